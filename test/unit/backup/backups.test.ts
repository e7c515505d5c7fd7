import { readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { readBackup } from "../../../core/backup/read.ts";
import type { Mark } from "../../../core/evidence/chain/high-water.ts";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { admin, BackupWorld, ended } from "../../support/backup-world.ts";
import { flip } from "../../support/flip.ts";
import { rejection } from "../../support/ledger-world.ts";

describe("Backups", () => {
  let world: BackupWorld;

  beforeEach(async () => {
    world = await BackupWorld.create();
    await world.ledger.act();
  });
  afterEach(() => world.remove());

  /** What a backup holds. */
  async function contentOf(path: string): Promise<{ marks: Mark[]; entries: Map<string, string> }> {
    const [marks, entries]: [Mark[], Map<string, string>] = [[], new Map()];
    const sink = {
      mark: (mark: Mark) => void marks.push(mark),
      entry: (key: string, value: string) => void entries.set(key, value),
      flush: async () => undefined,
    };
    await readBackup(path, { sink });
    return { marks, entries };
  }

  function codeOf(error: Error): string {
    return error instanceof GatewayError ? error.code : error.name;
  }

  it("holds every entry of the store of one moment, and the marks of that moment, while records are written", async () => {
    for (const tenant of ["acme", "other", "a/b"]) await world.ledger.act({ tenant });
    const backups = await world.open();
    let isOver = false;
    const load = (async () => {
      while (!isOver) await Promise.all(["acme", "other", "a/b"].map((tenant) => world.ledger.act({ tenant })));
    })();
    const { name } = await backups.begin(admin);
    expect((await ended(backups, name)).state).to.equal("complete");
    isOver = true;
    await load;
    const { marks, entries } = await contentOf(join(world.backupDir, name));
    expect(marks.map(({ tenant }) => tenant).sort()).to.deep.equal(["a/b", "acme", "other"]);
    for (const { tenant, seq } of marks) {
      expect(entries.has(recordKey(tenant, seq)), tenant).to.equal(true);
      expect(entries.has(recordKey(tenant, seq + 1)), tenant).to.equal(false);
      expect(await world.ledger.store.get(recordKey(tenant, seq + 1)), "written since").to.be.a("string");
    }
    expect(entries.get("format")).to.equal("5");
  });

  it("is not made of damaged files: the log says which, and where", async () => {
    await world.ledger.close();
    await world.ledger.open();
    const backups = await world.open();
    const state = join(world.dataDir, "state");
    const table = String((await readdir(state)).find((file) => file.endsWith(".ldb")));
    await flip({ path: join(state, table), at: 40, bit: 1 });
    const { name } = await backups.begin(admin);
    expect((await ended(backups, name)).state).to.equal("failed");
    expect(world.warnings).to.deep.include({
      message: "backup_failed",
      fields: {
        backup: name,
        cause: `state cannot be used: \`${state}\` is damaged (${table}, byte 0: the checksum of a block does not fit); restore the newest backup`,
      },
    });
    expect(await readdir(world.backupDir)).to.deep.equal([]);
  });

  it("is on record, with who asked, in the backup itself", async () => {
    const path = await world.make();
    const { detail } = (await world.ledger.recordsOf()).at(-1) as EventRecord;
    expect(detail).to.deep.equal({ action: "backup.create", backup: path.split("/").at(-1), principal: admin.id });
    const { marks, entries } = await contentOf(path);
    expect(entries.get(recordKey("acme", marks[0]?.seq ?? -1))).to.include("backup.create");
  });

  it("is one at a time: the second is refused until the first is complete", async () => {
    const backups = await world.open();
    const begun = await Promise.allSettled([backups.begin(admin), backups.begin(admin), backups.begin(admin)]);
    const refused = begun.flatMap((each) => (each.status === "rejected" ? [codeOf(each.reason)] : []));
    expect(refused).to.deep.equal(["BACKUP_BUSY", "BACKUP_BUSY"]);
    const [first] = begun;
    if (first?.status !== "fulfilled") throw new Error("expected the first to be taken");
    await ended(backups, first.value.name);
    await ended(backups, (await backups.begin(admin)).name);
    expect(await readdir(world.backupDir)).to.have.length(2);
  });

  it("keeps as many as it is told, the latest", async () => {
    const backups = await world.open({ keep: 2 });
    const names: string[] = [];
    for (let at = 0; at < 4; at++) {
      const { name } = await backups.begin(admin);
      await ended(backups, name);
      names.push(name);
    }
    await backups.close();
    expect(await readdir(world.backupDir)).to.have.members(names.slice(2));
  });

  it("pages through those there are, the latest first", async () => {
    const backups = await world.open();
    const names: string[] = [];
    for (let at = 0; at < 3; at++) {
      names.unshift((await backups.begin(admin)).name);
      await ended(backups, names[0] as string);
    }
    const first = await backups.list({ limit: 2 });
    const second = await backups.list({ limit: 2, cursor: first.next ?? "" });
    expect([...first.items, ...second.items].map(({ name }) => name)).to.deep.equal(names);
    expect(second.next).to.equal(null);
    expect(codeOf(await rejection(backups.list({ limit: 2, cursor: "../../etc/passwd" })))).to.equal("INVALID_PARAMS");
  });

  it("refuses while a chain is not sound, and says so to its log and nobody's file", async () => {
    world.ledger.ledger.refuse("other", "a test says so");
    const backups = await world.open();
    expect(codeOf(await rejection(backups.begin(admin)))).to.equal("EVIDENCE_UNAVAILABLE");
    expect(await readdir(world.backupDir)).to.deep.equal([]);
    expect(codeOf(await rejection(backups.begin(admin))), "and is not busy afterwards").to.equal(
      "EVIDENCE_UNAVAILABLE",
    );
  });

  it("begins nothing where the folder was changed for a link, and records nothing [S70]", async () => {
    const backups = await world.open();
    await rm(world.backupDir, { recursive: true });
    await symlink(world.root, world.backupDir);
    const records = (await world.ledger.texts()).length;
    expect(codeOf(await rejection(backups.begin(admin)))).to.equal("STATE_UNUSABLE");
    expect(await world.ledger.texts()).to.have.length(records);
    await rm(world.backupDir);
  });

  it("shows one that failed, leaves nothing of it, and makes the next", async () => {
    const keys = { create: () => Promise.reject(new Error("the disk is full")), find: async () => undefined };
    const backups = await world.open({ keys });
    const { name } = await backups.begin(admin);
    expect(await ended(backups, name)).to.include({ name, state: "failed", bytes: 0 });
    expect(await readdir(world.backupDir)).to.deep.equal([]);
    expect(world.warnings).to.deep.equal([
      { message: "backup_failed", fields: { backup: name, cause: "the disk is full" } },
    ]);
    await world.make();
  });

  it("is given up by a stop, and leaves nothing", async () => {
    const value = "x".repeat(10_000);
    for (let at = 0; at < 2_000; at++) await world.ledger.store.put(`filler-${at}`, value);
    const backups = await world.open();
    await backups.begin(admin);
    await backups.close();
    expect(await readdir(world.backupDir)).to.deep.equal([]);
    expect(world.warnings.map(({ message }) => message)).to.deep.equal(["backup_failed"]);
  });

  it("lets others run: no turn of the event loop takes long", async () => {
    for (let at = 0; at < 3_000; at++) await world.ledger.store.put(`filler-${at}`, "x".repeat(10_000));
    const backups = await world.open();
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const { name } = await backups.begin(admin);
    expect((await ended(backups, name)).bytes).to.be.above(30_000_000);
    delay.disable();
    // Thirty megabytes at once would take several times as long, even on an idle machine.
    expect(delay.percentile(99) / 1e6).to.be.below(100);
  });
});
