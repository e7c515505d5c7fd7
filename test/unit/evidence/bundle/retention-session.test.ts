import { expect } from "chai";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { type ExportRequest, SessionExport } from "../../../../core/evidence/bundle/session-export.ts";
import { type BundleReport, verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import { sessionKey, sessionOrderKey, sessionRecordRange } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { renderMarkdown } from "../../../../core/evidence/report/markdown.ts";
import { buildReport } from "../../../../core/evidence/report/model.ts";
import { newAction, rejection } from "../../../support/ledger-world.ts";
import { before as dawn, PruneWorld } from "../../../support/prune-world.ts";

const sessionOf = (label: string): string => newAction({}, label).session.id;

describe("the sessions of a pruned chain", () => {
  let world: PruneWorld;

  // Records: 0 genesis, 1–4 old, 5–8 long, then by day 9–10 long, 11–12 young, and 13, the pruning.
  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
    for (const label of ["old", "old", "long", "long"]) await world.act({}, label);
    world.wakeUp();
    for (const label of ["long", "young"]) await world.act({}, label);
  });

  afterEach(() => world.remove());

  it("are listed page by page, but for those that went", async () => {
    await world.prune();
    const first = await world.ledger.sessions("acme", { limit: 1 });
    const second = await world.ledger.sessions("acme", { limit: 1, cursor: first.next ?? "" });
    expect([...first.items, ...second.items].map(({ label }) => label)).to.deep.equal(["young", "long"]);
    expect(second.next).to.equal(null);
  });

  it("show their records from the cut on, page by page", async () => {
    await world.prune();
    const seen: number[] = [];
    for (let cursor: string | null = "0"; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof world.ledger.records>> = await world.ledger.records(
        "acme",
        sessionOf("long"),
        { limit: 1, cursor },
      );
      seen.push(...page.items.map(({ seq }) => seq));
      cursor = page.next;
    }
    expect(seen).to.deep.equal([9, 10]);
    expect(await rejection(world.ledger.records("acme", sessionOf("old"), { limit: 9 }))).to.include({
      code: "NOT_FOUND",
    });
  });

  it("leave no index behind where they went, and one entry where they go on", async () => {
    await world.prune();
    const [old, long] = [sessionOf("old"), sessionOf("long")];
    expect(await world.store.keys(sessionRecordRange("acme", old)).all()).to.deep.equal([]);
    expect(await world.store.get(sessionKey("acme", old))).to.equal(undefined);
    expect(await world.store.get(sessionOrderKey("acme", 1))).to.equal(undefined);
    expect(await world.store.values(sessionRecordRange("acme", long)).all()).to.deep.equal(["8", "9", "10"]);
    world.clock.nowMs += 1;
    await world.act({}, "long");
    await world.prune({ before: new Date(world.clock.nowMs).toISOString() });
    expect(await world.store.values(sessionRecordRange("acme", long)).all()).to.deep.equal(["10", "14", "15"]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("go on, and those that went begin anew, at once and after a start", async () => {
    await world.prune();
    await world.act({}, "long");
    await world.act({}, "old");
    await world.reopen();
    await world.act({}, "old");
    const records = (await world.recordsOf()).filter((each): each is ActionRecord => "session" in each);
    const indexesOf = (label: string): number[] =>
      records.filter(({ session }) => session.label === label).map(({ session }) => session.index);
    expect(indexesOf("long")).to.deep.equal([4, 5, 6, 7]);
    expect(indexesOf("old")).to.deep.equal([0, 1, 2, 3]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("stay stopped where what stopped them was before the cut", async () => {
    await world.ledger.recordEvent("acme", "session", { event: "killed", scope: "session", session: sessionOf("old") });
    world.clock.nowMs += 1;
    await world.events(1);
    await world.prune({ before: new Date(world.clock.nowMs).toISOString() });
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
    await world.act({}, "old");
    expect((await world.ledger.verify("acme")).firstBad).to.include({ reason: "allow_after_kill" });
  });

  it("are exported as what they are: whole, with a gap, or gone", async () => {
    await world.prune();
    expect(await exported("young")).to.include({ verdict: "self-attested", first_bad: null });
    const long = await exported("long");
    expect([long.verdict, long.first_bad?.reason, long.first_bad?.seq]).to.deep.equal(["incomplete", "session_gap", 9]);
    expect(await rejection(exported("old"))).to.include({ code: "NOT_FOUND" });
  });

  it("are reported as what they are", async () => {
    await world.prune();
    for (const [label, pruned] of [
      ["young", 0],
      ["long", 4],
    ] as const) {
      const report = buildReport(await exporter().collect("acme", "evidence.report", requestFor(label)));
      expect(report.pruned_records).to.equal(pruned);
      expect(
        renderMarkdown(report).includes(`Not the whole session: its first ${pruned} records were pruned.`),
      ).to.equal(pruned > 0);
    }
  });

  it("may not hide a record after the cut behind it", async () => {
    await world.prune();
    await world.store.put(sessionKey("acme", sessionOf("long"), 3), "7");
    expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({
      seq: 9,
      reason: "bad_session_link",
      detail: "the session's index does not lead to this record",
    });
  });

  describe("when the pruning is stopped half way", () => {
    beforeEach(async () => {
      for (let count = 0; count < 200; count++) await world.act({}, count % 2 === 0 ? "long" : "second day");
      world.clock.nowMs += 86_400_000;
      for (const label of ["long", "young"]) await world.act({}, label);
    });

    it("verify, start, go on, and are finished by the next one", async () => {
      const next = new Date(world.clock.nowMs).toISOString();
      await stopAfterFirstBatch(next);
      expect((await world.recordsOf()).slice(0, 2).map(({ seq }) => seq)).to.deep.equal([0, 256]);
      await world.reopen();
      expect(await world.ledger.verify("acme")).to.deep.include({ ok: true, firstKept: 413 });
      expect((await world.ledger.sessions("acme", { limit: 9 })).items.map(({ label }) => label)).to.deep.equal([
        "young",
        "long",
      ]);
      expect((await exported("long")).first_bad).to.deep.include({ reason: "session_gap", seq: 413 });
      await world.act({}, "long");
      await world.act({}, "second day");
      expect(await world.ledger.verify("acme")).to.include({ ok: true });
      const left = (await world.recordsOf()).filter(({ seq }) => seq > 0 && seq < 413).length;
      expect(await world.prune({ before: next })).to.deep.include({ firstKept: 413, records: left });
      expect((await world.recordsOf()).slice(0, 2).map(({ seq }) => seq)).to.deep.equal([0, 413]);
      expect((await world.recordsOf()).filter(({ kind }) => kind === "retention")).to.have.length(1);
      await world.act({}, "second day");
      await world.reopen();
      expect(await world.ledger.verify("acme")).to.include({ ok: true });
      expect((await exported("second day")).first_bad).to.deep.include({ reason: "session_gap" });
    });

    it("are pruned together with what has become older meanwhile", async () => {
      await stopAfterFirstBatch(new Date(world.clock.nowMs).toISOString());
      world.clock.nowMs += 1;
      await world.act({}, "young");
      const { firstKept } = await world.prune({ before: new Date(world.clock.nowMs).toISOString() });
      expect((await world.recordsOf()).filter(({ seq }) => seq < firstKept).map(({ kind }) => kind)).to.deep.equal([
        "genesis",
        "retention",
      ]);
      expect(await world.ledger.verify("acme")).to.deep.include({ ok: true, firstKept });
    });
  });

  async function stopAfterFirstBatch(until: string): Promise<void> {
    const onProgress = (_done: number, what: string): void => {
      if (what === "deleted") throw new Error("stopped");
    };
    expect((await rejection(world.prune({ before: until }, "acme", { onProgress }))).message).to.equal("stopped");
  }

  function exporter(): SessionExport {
    const keys = new KeyFolder(world.keysPath, () => new Uint8Array(32));
    return new SessionExport({ store: world.store, keys, ledger: world.ledger, clock: world.clock.now });
  }

  async function exported(label: string): Promise<BundleReport> {
    const bundle = await exporter().bundle("acme", requestFor(label));
    return verifyBundle(bundle, { keys: [], rules: evidenceRules, nowMs: Date.parse(dawn) });
  }
});

function requestFor(label: string): ExportRequest {
  return { session: sessionOf(label), by: "auditor", disclose: true, redact: [] };
}
