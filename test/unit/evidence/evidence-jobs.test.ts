import { randomBytes } from "node:crypto";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { GatewayError } from "../../../core/action/error.ts";
import { uuidV7 } from "../../../core/action/id.ts";
import { EvidenceJobs } from "../../../core/evidence/evidence-jobs.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { RetentionSchedule } from "../../../core/evidence/retention-schedule.ts";
import { HeldSnapshot } from "../../../core/store/held-snapshot.ts";
import { dataFiles, flip } from "../../support/flip.ts";
import { rejection } from "../../support/ledger-world.ts";
import { before, PruneWorld } from "../../support/prune-world.ts";

describe("EvidenceJobs", () => {
  let world: PruneWorld;
  let jobs: EvidenceJobs;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
    for (let count = 0; count < 5; count++) await world.act({ arguments: { patient: "Anna" } }, "old");
    world.wakeUp();
    await world.act({}, "young");
    jobs = new EvidenceJobs({
      store: world.store,
      stateDir: join(world.dir, "state"),
      ledger: world.ledger,
      forget: () => Promise.resolve(),
      clock: world.clock.now,
      newId: () => uuidV7(Date.now(), randomBytes(10)),
      elapsedMs: () => performance.now(),
      onWarning: (message, fields) => world.warnings.push({ message, fields }),
    });
  });

  afterEach(async () => {
    await jobs.close();
    await world.remove();
  });

  async function ended(): Promise<void> {
    while (jobs.list("acme")[0]?.state === "running" || jobs.list("acme")[0]?.state === "waiting") await sleep(5);
  }

  it("records who asked, prunes, and says so", async () => {
    expect(await jobs.begin("acme", "ann", { kind: "prune", before })).to.include({
      state: "waiting",
      kind: "prune",
      by: "ann",
    });
    await ended();
    expect(jobs.list("acme")[0]).to.deep.include({
      state: "complete",
      verified: 14,
      deleted: 10,
      fault: null,
      result: { before, records: 10, first_kept: 11, first_younger: 11 },
    });
    const told = (await world.recordsOf()).slice(-2) as readonly EventRecord[];
    expect(told.map(({ kind, detail }) => [kind, detail])).to.deep.equal([
      ["admin", { action: "evidence.prune", principal: "ann", before }],
      ["retention", { event: "pruned", before, first_kept: 11, records: 10, by: "ann" }],
    ]);
  });

  it("erases, and records it", async () => {
    await jobs.begin("acme", "ann", { kind: "erase", of: { seq: 1 }, fields: ["arguments.*"], reason: "asked" });
    await ended();
    expect(jobs.list("acme")[0]).to.deep.include({ state: "complete", result: { fields: 1, seqs: [1] } });
  });

  it("refuses a second one of a tenant while one has not ended, and not one of another tenant", async () => {
    await world.act({ tenant: "other" });
    const begun = jobs.begin("acme", "ann", { kind: "prune", before });
    for (const kind of ["prune", "erase"] as const) {
      const task = kind === "prune" ? { kind, before } : { kind, of: { seq: 1 }, fields: ["*"], reason: "asked" };
      expect(await rejection(jobs.begin("acme", "bob", task))).to.include({
        code: "EVIDENCE_BUSY",
        message: "another prune or erasure is running: ask again when it has ended",
      });
    }
    await jobs.begin("other", "eve", { kind: "prune", before });
    await begun;
    await ended();
    expect(jobs.list("acme")).to.have.length(1);
    await jobs.begin("acme", "bob", { kind: "prune", before });
    expect(jobs.list("acme")).to.have.length(2);
  });

  it("refuses to erase what is not there, and is not busy afterwards", async () => {
    for (const of of [{ seq: 99 }, { session: "none" }]) {
      const begun = jobs.begin("acme", "ann", { kind: "erase", of, fields: ["*"], reason: "asked" });
      expect(await rejection(begun)).to.include({ code: "NOT_FOUND" });
    }
    expect(jobs.list("acme")).to.deep.equal([]);
    await jobs.begin("acme", "ann", { kind: "prune", before });
  });

  it("shows a job that failed with the reason: a chain that is broken is not pruned", async () => {
    const [first] = await world.store.keys({ gte: "{record}/acme/", limit: 3 }).all();
    await world.store.put(first ?? "", "{}");
    await jobs.begin("acme", "ann", { kind: "prune", before });
    await ended();
    expect(jobs.list("acme")[0]?.state).to.equal("failed");
    expect(jobs.list("acme")[0]?.fault).to.match(/^evidence cannot be written: chain of tenant `acme` is broken/);
    expect(await world.texts()).to.have.length.above(12);
  });

  it("changes nothing where a file of the store is damaged, and says which", async () => {
    const [file] = (await dataFiles(join(world.dir, "state"))).filter(({ path }) => path.endsWith(".log"));
    const bit = { path: file?.path ?? "", at: 50, bit: 0 };
    await flip(bit);
    const said = `\`${basename(bit.path)}\` of the store is damaged at byte `;
    const refused = (await rejection(jobs.beginWatch())) as GatewayError;
    expect(refused.code).to.equal("EVIDENCE_UNAVAILABLE");
    expect(refused.detail).to.include(said);
    const records = (await world.texts()).length;
    for (const task of [
      { kind: "prune", before },
      { kind: "erase", of: { seq: 1 }, fields: ["*"], reason: "asked" },
    ] as const) {
      await jobs.begin("acme", "ann", task);
      await ended();
      expect(jobs.list("acme")[0]?.fault).to.include(said);
    }
    // The requests alone are new.
    expect(await world.texts()).to.have.length(records + 2);
    expect(world.warnings.filter(({ message }) => message === "store_damaged")).to.have.length(3);
    await flip(bit);
    expect(await world.ledger.verify("acme", await jobs.beginWatch())).to.include({ ok: true });
  });

  it("ends at once at a stop, even while it waits for a snapshot, and begins no other", async () => {
    await using _held = new HeldSnapshot(world.store);
    await jobs.begin("acme", "ann", { kind: "prune", before });
    await jobs.close();
    expect(jobs.list("acme")[0]).to.include({ state: "failed", fault: "the gateway is stopping" });
    expect(await rejection(jobs.begin("acme", "ann", { kind: "prune", before }))).to.include({ code: "STOPPING" });
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  describe("by the configuration", () => {
    function schedule(limits: {
      readonly retentionDays?: number;
      readonly retentionBytes?: number;
    }): RetentionSchedule {
      return new RetentionSchedule({
        store: world.store,
        jobs,
        status: () => world.ledger.status(),
        clock: world.clock.now,
        elapsedMs: () => performance.now(),
        retentionDays: 0,
        retentionBytes: 0,
        ...limits,
        onWarning: (message, fields) => world.warnings.push({ message, fields }),
      });
    }

    it("begin none where it sets no limit, or nothing exceeds it", async () => {
      for (const limits of [{}, { retentionDays: 1 }, { retentionBytes: 1_000_000 }]) {
        const each = schedule(limits);
        each.start();
        await each.close();
      }
      expect(jobs.list("acme")).to.deep.equal([]);
    });

    it("prune what is older than it keeps, once", async () => {
      world.clock.nowMs = Date.parse(before) + 86_400_000;
      const each = schedule({ retentionDays: 1 });
      await each.run();
      await ended();
      expect(jobs.list("acme")[0]).to.deep.include({
        state: "complete",
        by: "evidence.retention_days",
        deleted: 10,
      });
      await each.run();
      expect(jobs.list("acme")).to.have.length(1);
      await each.close();
    });

    it("prune the oldest beyond the bytes it keeps", async () => {
      for (let day = 0; day < 50; day++) {
        world.clock.nowMs += 60_000;
        await world.act({ arguments: { text: randomBytes(2_000).toString("base64") } }, `d${day}`);
      }
      // Tables are written when the store is opened.
      await jobs.close();
      await world.reopen();
      const begun: object[] = [];
      const each = new RetentionSchedule({
        store: world.store,
        jobs: { begin: async (...job) => begun.push(job) as never },
        status: () => world.ledger.status(),
        clock: world.clock.now,
        elapsedMs: () => performance.now(),
        retentionDays: 3_650,
        retentionBytes: 100_000,
        onWarning: (message, fields) => world.warnings.push({ message, fields }),
      });
      await each.run();
      await each.close();
      expect(begun).to.have.length(1);
      const [tenant, by, task] = begun[0] as [string, string, { readonly before: string }];
      expect([tenant, by]).to.deep.equal(["acme", "evidence.retention_bytes"]);
      expect(task.before > before).to.equal(true);
      expect(task.before < new Date(world.clock.nowMs).toISOString()).to.equal(true);
    });
  });
});
