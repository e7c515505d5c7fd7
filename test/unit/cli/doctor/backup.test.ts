import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { backupName } from "../../../../core/backup/folder.ts";
import { checkBackups } from "../../../../core/cli/doctor/backup.ts";

describe("checkBackups(target)", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "doctor-backup-"));
    await mkdir(join(folder, "data"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  async function check(changes: object = {}): Promise<readonly string[]> {
    const resilience = { enabled: true, tenant: "acme", backupDir: join(folder, "backups"), ...changes };
    const config = { source: "gateway.yaml", dataDir: join(folder, "data"), state: { enabled: true }, resilience };
    const findings = await checkBackups({ config: { ...config, ...changes } } as unknown as Parameters<
      typeof checkBackups
    >[0]);
    return findings.map(({ status, text, fix }) => `${status}: ${text}; ${fix}`.replaceAll(folder, ""));
  }

  async function add(madeAt: string): Promise<void> {
    await mkdir(join(folder, "backups"), { recursive: true, mode: 0o700 });
    await writeFile(join(folder, "backups", backupName(madeAt, Buffer.alloc(4))), "", { mode: 0o600 });
  }

  it("asks for the first one, and for a copy of the keys", async () => {
    expect((await check()).join()).to.match(
      /^warn: there is none yet; run `gateway backup create`, and copy `\/data\/keys`/,
    );
  });

  it("names the newest, and asks for another where it is a week old", async () => {
    await add("2020-01-01T00:00:00.000Z");
    expect((await check()).join()).to.match(/^warn: the newest is \d+ days old; run `gateway backup create`/);
    const now = new Date().toISOString();
    await add(now);
    expect(await check()).to.deep.equal([
      `ok: the newest is of ${now}; without a copy of \`/data/keys\` none can be restored; null`,
    ]);
  });

  it("asks for what lets nobody make one, and for nothing where there is nothing to keep", async () => {
    expect((await check({ enabled: false })).join()).to.match(/^warn: .*; set `resilience.enabled` to true/);
    expect((await check({ tenant: null }))[1]).to.match(/^warn: nobody may make one.*`resilience.tenant`/);
    expect((await check({ source: null })).join()).to.match(/^ok: local mode makes none: stop it and copy `\/data`/);
    expect((await check({ state: { enabled: false } })).join()).to.match(/^ok: none are needed/);
  });
});
