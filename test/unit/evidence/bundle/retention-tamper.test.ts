import { expect } from "chai";
import fc from "fast-check";
import {
  checkpointAtRange,
  checkpointKey,
  prunedKey,
  recordKey,
  recordRange,
  tileKey,
} from "../../../../core/evidence/record/key-space.ts";
import type { Reason } from "../../../../core/evidence/record/reason.ts";
import { PrunedPrefix } from "../../../../core/evidence/tree/pruned-prefix.ts";
import { TileReader } from "../../../../core/evidence/tree/tile-reader.ts";
import { makeEvaluation, newAction } from "../../../support/ledger-world.ts";
import { PruneWorld } from "../../../support/prune-world.ts";
import { roundsOf } from "../../../support/rounds.ts";

/** What somebody with the data folder does by hand. */
type Tamper = (world: PruneWorld) => Promise<unknown>;

const kept = 300;

// Records: 0 genesis, 1 configuration, 2–299 notes of the night; 300–309 of the day; in a pruned chain 310, the pruning.
const byHand: readonly (readonly [string, number, Reason, string, Tamper])[] = [
  ["deletes records", 2, "seq_gap", "expected record 2, got a gap", (world) => remove(world, 2, kept)],
  ["deletes all records before one", 0, "seq_gap", "expected record 0, got a gap", (world) => remove(world, 0, kept)],
  [
    "deletes records and leaves what a pruning leaves, but for its record",
    0,
    "missing_record",
    "expected the last retention record to name record 300 as the first kept, got none",
    async (world) => {
      await pretend(world, kept);
      await remove(world, 2, kept);
    },
  ],
];

const afterPruning: readonly (readonly [string, number, Reason, string, Tamper])[] = [
  [
    "goes on deleting, and moves the cut",
    0,
    "missing_record",
    "expected the last retention record to name record 302 as the first kept, got record 300",
    async (world) => {
      await pretend(world, 302);
      await remove(world, kept, 302);
    },
  ],
  [
    "deletes the first records after the cut",
    300,
    "seq_gap",
    "expected record 300, got a gap",
    (world) => remove(world, kept, 302),
  ],
  [
    "deletes an event that had to stay",
    0,
    "missing_record",
    "expected 2 records to have stayed before record 300, got 1",
    (world) => remove(world, 1, 2),
  ],
  ["deletes the genesis", 0, "missing_record", "the genesis record is missing", (world) => remove(world, 0, 1)],
  [
    "deletes what is left of the pruned",
    2,
    "seq_gap",
    "expected record 2, got a gap",
    (world) => world.store.del(prunedKey("acme")),
  ],
  [
    "moves the cut back",
    256,
    "seq_gap",
    "expected record 256, got a gap",
    (world) => world.store.put(prunedKey("acme"), "256 "),
  ],
  [
    "writes nonsense there",
    0,
    "malformed",
    "the store cannot be read: what was kept of the pruned records is damaged",
    (world) => world.store.put(prunedKey("acme"), "256"),
  ],
  [
    "deletes the tile of the pruned",
    0,
    "bad_inclusion",
    "the leaf of record 0 is missing",
    (world) => world.store.del(tileKey("acme", 0, 0)),
  ],
  [
    "puts another record where one was pruned",
    7,
    "bad_prev_hash",
    "`prev_hash` is not the digest of the record before",
    async (world) => {
      const text = (await world.store.get(recordKey("acme", 300))) ?? "";
      await world.store.put(recordKey("acme", 7), text.replace('"seq":300', '"seq":7'));
    },
  ],
];

describe("a chain that was pruned [S64]", () => {
  let world: PruneWorld;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
    await world.ledger.recordEvent("acme", "configuration", { event: "started" });
    await world.events(kept - 2);
    world.wakeUp();
    await world.events(10);
  });

  afterEach(() => world.remove());

  for (const [what, seq, reason, detail, tamper] of byHand) {
    it(`is not one of which somebody ${what}`, async () => {
      await tamper(world);
      expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({ seq, reason, detail });
    });
  }

  for (const [what, seq, reason, detail, tamper] of afterPruning) {
    it(`is found out where somebody ${what}`, async () => {
      await world.prune();
      expect(await world.ledger.verify("acme")).to.include({ ok: true });
      await tamper(world);
      expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({ seq, reason, detail });
    });
  }

  it("is found out where somebody puts a changed record back", async () => {
    const text = (await world.store.get(recordKey("acme", 7))) ?? "";
    await world.prune();
    await world.store.put(recordKey("acme", 7), text.replace("admin", "extension"));
    expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({
      seq: 7,
      reason: "bad_inclusion",
      detail: "the record is not the one of the tree",
    });
  });

  it("is not refused for a record that a backup brought back: it is the one of the tree", async () => {
    const text = (await world.store.get(recordKey("acme", 7))) ?? "";
    await world.prune();
    await world.store.put(recordKey("acme", 7), text);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
    expect(await world.prune()).to.deep.include({ records: 1 });
    expect(await world.store.get(recordKey("acme", 7))).to.equal(undefined);
  });
});

describe("any chain, cut anywhere", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("act a", "act b", "act c", "block a") },
    { weight: 2, arbitrary: fc.constantFrom("note", "configure", "begin", "end") },
    { weight: 1, arbitrary: fc.constantFrom("rotate", "restart", "burst") },
  );
  const plan = fc.record({
    steps: fc.array(step, { minLength: 5, maxLength: 40 }),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 3 }),
    entry: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    byte: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });

  it("verifies, starts and goes on; one changed byte of what is kept is found", async () => {
    await fc.assert(
      fc.asyncProperty(plan, async ({ steps, cuts, entry, byte }) => {
        const world = await PruneWorld.create();
        try {
          await world.open();
          for (const each of steps) await take(world, each);
          for (const cut of cuts) {
            await world.prune({ before: await timeAt(world, cut) });
            expect(await world.ledger.verify("acme")).to.include({ ok: true });
            await world.reopen();
            for (const each of ["act a", "burst", "act b", "note"]) await take(world, each);
            expect(await world.ledger.verify("acme")).to.include({ ok: true });
          }
          const key = await flip(world, entry, byte);
          expect((await world.ledger.verify("acme")).ok, key).to.equal(false);
        } finally {
          await world.remove();
        }
      }),
      { numRuns: roundsOf(15, 400) },
    );
  });
});

async function take(world: PruneWorld, step: string): Promise<void> {
  world.clock.nowMs += 1_000;
  const [what, label = ""] = step.split(" ");
  const action = newAction({}, label);
  if (what === "act") await world.act({}, label);
  if (what === "block") await world.ledger.actions.recordDecision(action, makeEvaluation(action, "block"));
  if (what === "begin") await world.ledger.actions.recordDecision(action, makeEvaluation(action)); // a start ends it
  if (what === "note") await world.events(1);
  if (what === "configure") await world.ledger.recordEvent("acme", "configuration", { event: "reloaded" });
  if (what === "rotate") await world.ledger.rotateKey("acme");
  if (what === "restart" || what === "end") await world.reopen();
  if (what === "burst") await world.events(120);
}

/** The time of the record at this share of the chain, but never of one after the last. */
async function timeAt(world: PruneWorld, share: number): Promise<string> {
  const records = await world.recordsOf();
  return records[Math.floor(share * (records.length - 1))]?.time ?? "";
}

/** Changes one byte of a record, a tile, a checkpoint, or of what is left of the pruned; says of which. */
async function flip(world: PruneWorld, entry: number, byte: number): Promise<string> {
  const tiles = { gte: tileKey("acme", 0, 0), lt: `${tileKey("acme", 9, 0)}` };
  const entries: [string, string][] = [];
  for (const range of [recordRange("acme"), tiles, checkpointAtRange("acme")]) {
    entries.push(...(await world.store.iterator(range).all()));
  }
  for (const key of [prunedKey("acme"), checkpointKey("acme")]) {
    const value = await world.store.get(key);
    if (value !== undefined) entries.push([key, value]);
  }
  const [key, value] = entries[Math.floor(entry * entries.length)] as [string, string];
  const at = Math.floor(byte * value.length);
  const changed = value[at] === "x" ? "y" : "x";
  await world.store.put(key, value.slice(0, at) + changed + value.slice(at + 1));
  return `${key} at ${at}`;
}

async function remove(world: PruneWorld, from: number, to: number): Promise<void> {
  await world.store.clear({ gte: recordKey("acme", from), lt: recordKey("acme", to) });
}

/** Writes what a pruning leaves, without its record. */
async function pretend(world: PruneWorld, firstKept: number): Promise<void> {
  const edge = await new TileReader(world.store, "acme").leaves(PrunedPrefix.edgeStart(firstKept), firstKept);
  await world.store.put(prunedKey("acme"), new PrunedPrefix(firstKept, edge).toText());
}
