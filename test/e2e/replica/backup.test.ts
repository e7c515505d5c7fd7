import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { startGateway } from "../../support/gateway.ts";
import { type Ran, runProgram } from "../../support/program.ts";
import { ReplicaGroup } from "../../support/replica-group.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

describe("a backup that a replica makes", () => {
  let folder: string;
  let group: ReplicaGroup;
  let config: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "replica-backup-"));
    config = siteConfig({ localLog: join(folder, "calls.jsonl"), role: "admin" });
    const more = `resilience: { enabled: true, backup_dir: ${join(folder, "backups")} }`;
    group = await ReplicaGroup.create({ config: `${config}\n${more}`, files: siteFiles(), leaseMs: 2_000 });
    await group.start(0);
    await group.start(1);
  });

  after(async () => {
    await group.stop();
    await rm(folder, { recursive: true });
  });

  it("is restored as a data folder of its own, with the evidence of all", async () => {
    const agent = new Agent(group.member(1).url, siteKey, "kept");
    const { result } = await agent.call("write_note", { title: "kept", text: "text" });
    expect(result?.isError).to.not.equal(true);
    await agent.hangUp();
    // By way of the one that forwards.
    const made = await gateway("backup", "create", "--admin", group.member(1).adminUrl);
    expect(made.code, made.stderr).to.equal(0);
    const data = join(folder, "site", "data");
    await mkdir(data, { recursive: true });
    await cp(join(group.folderOf(0), "data", "keys"), join(data, "keys"), { recursive: true });
    const restored = await gateway("restore", join(folder, "backups", made.stdout.trim()), "--data", data);
    expect(restored.code, restored.stderr).to.equal(0);
    const site = await startGateway({ config, files: siteFiles(), folder: join(folder, "site") });
    const reader = new EvidenceReader(site.adminUrl, siteKey);
    expect(await reader.verify()).to.include({ ok: true });
    const kept = await reader.recordsOf((label) => label === "kept");
    expect(kept.map(({ effect }) => effect)).to.deep.equal(["dispatched", "success"]);
    await site.stop();
    expect(await readFile(join(folder, "calls.jsonl"), "utf8")).to.contain("kept");
  });

  function gateway(...args: readonly string[]): Promise<Ran> {
    return runProgram(process.execPath, [program, ...args], "", { GATEWAY_API_KEY: siteKey });
  }
});
