import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import { pieceKeys } from "../../../../core/evidence/private/entry-piece.ts";
import { checkpointKey, partRange, recordKey, seqIn } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord, EventRecord } from "../../../../core/evidence/record/record.ts";
import { parseCheckpoint } from "../../../../core/evidence/tree/checkpoint.ts";
import { leafHash, rootOf, verifyConsistency, verifyInclusion } from "../../../../core/evidence/tree/merkle.ts";
import { TileReader } from "../../../../core/evidence/tree/tile-reader.ts";
import { Pace } from "../../../../core/store/pace.ts";
import { filesWith } from "../../../support/disk-search.ts";
import { layFormerEntry } from "../../../support/former-entry.ts";
import { makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";
import { before as dawn, PruneWorld } from "../../../support/prune-world.ts";

describe("Ledger.prune(tenant, request, tools)", () => {
  let world: PruneWorld;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
  });

  afterEach(() => world.remove());

  for (const old of [2, 255, 256, 257, 511, 512, 600]) {
    for (const young of [1, 255, 300]) {
      it(`cuts ${old} of ${old + young} records: the rest verifies, starts, grows, and proves every size as before`, async () => {
        await world.events(old - 1); // the genesis is the first
        world.wakeUp();
        await world.events(young);
        const hashes = (await world.texts()).map(sha256Hex);
        expect(await world.prune()).to.deep.equal({ firstKept: old, records: old - 1, firstYounger: old });
        expect((await world.recordsOf()).map(({ seq }) => seq)).to.deep.equal([0, ...range(old, old + young + 1)]);
        await expectSound(old + young + 1, old);
        await world.reopen();
        await world.events(300);
        await expectSound(old + young + 301, old);
        await expectProven(hashes, [1, 2, old - 1, old, old + 1, old + young]);
      });
    }
  }

  for (const old of [0, 1]) {
    it(`prunes nothing where ${old} records are older, and records nothing`, async () => {
      if (old === 0) world.wakeUp();
      await world.events(0);
      await world.ledger.recordEvent("acme", "admin", {});
      const texts = await world.texts();
      const time = old === 0 ? dawn : "2026-05-01T09:00:00.000Z";
      expect(await world.prune({ before: time })).to.deep.include({ firstKept: 0, records: 0 });
      expect(await world.texts()).to.deep.equal(texts);
    });
  }

  it("says on record what went, when, why and for whom", async () => {
    await world.events(9);
    world.wakeUp();
    await world.events(1);
    await world.prune({ reason: "90 days are over" });
    const record = (await world.recordsOf()).at(-1) as EventRecord;
    expect([record.kind, record.detail]).to.deep.equal([
      "retention",
      { event: "pruned", before: dawn, first_kept: 10, records: 9, by: "dpo", reason: "90 days are over" },
    ]);
  });

  it("keeps genesis, keys, and the events that explain the rest", async () => {
    const kept = ["configuration", "extension", "redaction"] as const;
    for (const kind of [...kept, "admin", "heartbeat", "approval"] as const) {
      await world.ledger.recordEvent("acme", kind, kind === "approval" ? { event: "denied", id: "apr_1" } : {});
    }
    for (const event of ["killed", "released", "begun"]) {
      await world.ledger.recordEvent("acme", "session", { event, session: "s" });
    }
    await world.ledger.rotateKey("acme");
    world.wakeUp();
    await world.act();
    await world.prune();
    const left = (await world.recordsOf()).filter(({ seq }) => seq < 11).map(({ kind }) => kind);
    expect(left).to.deep.equal(["genesis", ...kept, "session", "session", "key"]);
    await world.reopen();
    expect(await world.ledger.verify("acme")).to.include({ ok: true, firstKept: 11 });
  });

  it("prunes again, and again, each time saying so", async () => {
    for (let day = 1; day <= 4; day++) {
      await world.events(150);
      await world.act({}, "goes on");
      world.clock.nowMs += 86_400_000;
      await world.act({}, "goes on");
      const { firstKept } = await world.prune({ before: new Date(world.clock.nowMs).toISOString() });
      expect(await world.ledger.verify("acme")).to.deep.include({ ok: true, firstKept });
    }
    const told = (await world.recordsOf()).filter(({ kind }) => kind === "retention");
    expect(told).to.have.length(4);
    await world.reopen();
    await world.act({}, "goes on");
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("does nothing the second time", async () => {
    await world.events(300);
    world.wakeUp();
    await world.events(1);
    await world.prune();
    const texts = await world.texts();
    expect(await world.prune()).to.deep.equal({ firstKept: 301, records: 0, firstYounger: 301 });
    expect(await world.texts()).to.deep.equal(texts);
  });

  for (const where of ["log", "tables"] as const) {
    it(`takes records, private fields and their keys off the disk's ${where}, and leaves those of others`, async () => {
      await world.act({ arguments: { patient: "Anna" } }); // records 1 and 2
      await layFormerEntry(world, (await world.recordsOf())[1] as ActionRecord);
      await world.act({ tenant: "other" });
      world.wakeUp();
      await world.act({}, "another");
      const secrets = [1, 2].map((seq) => recordKey("acme", seq, "disclosure"));
      secrets.push(recordKey("acme", 1, "data-key"));
      const gone = (await world.store.getMany(secrets)) as string[];
      // Tables compress records: nobody finds their bytes there.
      if (where === "log") gone.push(...(await world.recordsOf()).slice(1, 3).map(({ salt }) => salt));
      else await world.reopen();
      for (const text of gone) expect(await filesWithPart(text), text).to.have.length.above(0);
      await world.prune();
      for (const text of gone) expect(await filesWithPart(text), text).to.deep.equal([]);
      await world.reopen();
      for (const text of gone) expect(await filesWithPart(text), text).to.deep.equal([]);
      expect(await world.ledger.verify("other")).to.deep.include({ ok: true, records: 3 });
      expect(await world.ledger.verify("acme")).to.include({ ok: true });
    });
  }

  it("takes the pieces of large fields with their records, and leaves those of records that stay", async () => {
    const scan = (): string => randomBytes(400_000).toString("hex");
    await world.act({ arguments: { scan: scan() } }); // records 1 and 2
    await world.events(70); // more than are read at once while the gateway serves
    const spanning = newAction({ arguments: { scan: scan() } });
    const decided = world.ledger.actions.recordDecision(spanning, makeEvaluation(spanning));
    await world.act();
    await decided;
    world.wakeUp();
    await world.ledger.actions.recordOutcome(spanning, { status: "success", output: { scan: scan() } });
    const places = await world.store.iterator(partRange("acme", "pieces")).all();
    expect(places).to.have.length(3);
    const [[, goes = ""] = [], ...stays] = places;
    const [piece = ""] = pieceKeys("acme", goes);
    const secret = (await world.store.get(piece))?.slice(4_000, 4_400) ?? "";
    expect(await filesWith(world.dir, secret)).to.have.length.above(0);
    const pace = new Pace({ sliceMs: 1_000, restRatio: 0, elapsedMs: () => performance.now() });
    expect(await world.prune({}, "acme", { pace })).to.include({ firstKept: seqIn(stays[0]?.[0] ?? "") });
    expect(await filesWith(world.dir, secret)).to.deep.equal([]);
    expect(await world.store.iterator(partRange("acme", "pieces")).all()).to.deep.equal(stays);
    const left = stays.flatMap(([, place]) => pieceKeys("acme", place));
    expect(await world.store.keys(partRange("acme", "piece")).all()).to.deep.equal(left);
    const records = (await world.recordsOf()) as ActionRecord[];
    for (const record of records.filter(({ action }) => action?.id === spanning.id)) {
      const { arguments: before, output } = await world.ledger.disclosure(record);
      expect([before, output].flat().filter((field) => field?.value !== undefined)).to.have.length(1);
    }
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("keeps an action whole whose outcome is younger, and all that came after its decision", async () => {
    await world.act();
    const late = newAction();
    await world.ledger.actions.recordDecision(late, makeEvaluation(late)); // record 3
    await world.act();
    world.wakeUp();
    await world.ledger.actions.recordOutcome(late, { status: "success", output: {} });
    expect(await world.prune()).to.deep.equal({ firstKept: 3, records: 2, firstYounger: 6 });
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("keeps a decision that is open, and the start that follows settles it", async () => {
    await world.act();
    const open = newAction();
    await world.ledger.actions.recordDecision(open, makeEvaluation(open)); // record 3
    world.wakeUp();
    await world.events(1);
    expect(await world.prune()).to.include({ firstKept: 3, firstYounger: 4 });
    await world.reopen();
    expect((await world.recordsOf()).at(-1)).to.deep.include({ kind: "outcome", effect: "unknown" });
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("refuses a tenant without evidence, and a time that would leave nothing", async () => {
    await world.events(3);
    expect(await rejection(world.prune({}, "nobody"))).to.include({ code: "NOT_FOUND" });
    expect(await rejection(world.prune())).to.include({
      code: "INVALID_PARAMS",
      detail: `every record is older than ${dawn}: nothing would be left; choose an earlier time`,
    });
    expect(await world.texts()).to.have.length(4);
  });

  it("deletes nothing of a chain that is not sound: it is the evidence of that", async () => {
    await world.events(9);
    world.wakeUp();
    await world.events(1);
    await world.store.del(recordKey("acme", 5));
    const texts = await world.texts();
    expect(await rejection(world.prune())).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "chain of tenant `acme` is broken at record 5: expected record 5, got a gap",
    });
    expect(await world.texts()).to.deep.equal(texts);
  });

  /** Even random text repeats itself now and then, and a table would tear it there. */
  async function filesWithPart(text: string): Promise<readonly string[]> {
    const parts = text.match(/.{20}/g) ?? [];
    return (await Promise.all(parts.map((part) => filesWith(world.dir, part)))).flat();
  }

  async function expectSound(records: number, firstKept: number): Promise<void> {
    const { head: _, ...report } = await world.ledger.verify("acme");
    expect(report).to.deep.equal({ ok: true, tenant: "acme", records, firstKept });
  }

  /** What a witness was told of any size, pruned or not, is still proven by what is kept. */
  async function expectProven(hashes: readonly string[], sizes: readonly number[]): Promise<void> {
    const leaves = hashes.map(leafHash);
    const tiles = new TileReader(world.store, "acme");
    const latest = parseCheckpoint((await world.store.get(checkpointKey("acme"))) ?? "");
    if (latest === undefined) throw new Error("expected a checkpoint");
    const { size, root } = latest;
    for (const at of sizes) {
      const before = rootOf(leaves.slice(0, at));
      expect((await tiles.root(at)).equals(before), `root of ${at}`).to.equal(true);
      expect(verifyConsistency(at, before, size, root, await tiles.consistencyProof(at, size))).to.equal(true);
      const proof = await tiles.inclusionProof(at - 1, size);
      expect(verifyInclusion(leaves[at - 1] as Buffer, at - 1, size, proof, root)).to.equal(true);
    }
  }
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}
