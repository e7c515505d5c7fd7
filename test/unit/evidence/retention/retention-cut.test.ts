import { expect } from "chai";
import { recordKey } from "../../../../core/evidence/record/key-space.ts";
import { StoreView } from "../../../../core/evidence/record/store-view.ts";
import { type Cut, findCut } from "../../../../core/evidence/retention/cut.ts";
import { approvalOf, type Draft, decision, event, outcome, placeChain } from "../../../support/evidence-world.ts";
import { LedgerWorld } from "../../../support/ledger-world.ts";

const pending = { approval: { ...approvalOf("d"), reviewer: null, state: "pending" } };
const held = (): Draft => decision("d", "review", pending);
const used = (): Draft => decision("d", "review", { approval: approvalOf("d"), effect: "dispatched" });
const approval = (name: string, more: Draft = {}): Draft => event("approval", { id: "apr_1", event: name, ...more });
const glass = { break_glass: { reason: "fire" } };
const note = (): Draft => event("admin", {});
const done = (): Draft[] => [decision("a", "allow"), outcome("a", "success")];

// Each chain begins with its genesis and ends with a record that is not older; the cut is wanted before that one.
const table: readonly (readonly [string, readonly Draft[], number])[] = [
  ["actions that are over", [...done(), note()], 4],
  ["an action without outcome", [...done(), decision("b", "allow"), note()], 3],
  ["a blocked action, and one held without an approval", [decision("b", "block"), decision("c", "review")], 3],
  ["a held call that nobody has reviewed", [note(), held(), note()], 2],
  ["an approval short of its quorum", [note(), held(), approval("endorsed"), note()], 2],
  ["an approval that may yet be used", [note(), held(), approval("approved"), note()], 2],
  ["an approved action without outcome", [note(), held(), approval("approved"), used(), note()], 2],
  ["an approval that was used", [note(), held(), approval("approved"), used(), outcome("d", "success")], 6],
  ["an approval that was denied", [note(), held(), approval("denied"), note()], 5],
  ["an approval that expired", [note(), held(), approval("approved"), approval("expired")], 5],
  [
    "break-glass that nobody has accounted for",
    [note(), held(), approval("approved", glass), used(), outcome("d", "success"), note()],
    2,
  ],
  [
    "break-glass with its post-mortem",
    [held(), approval("approved", glass), used(), outcome("d", "success"), approval("post_mortem"), note()],
    7,
  ],
  [
    "a post-mortem before the use",
    [held(), approval("approved", glass), approval("post_mortem"), used(), outcome("d", "success")],
    6,
  ],
  ["an action inside an approval that goes on", [held(), ...done(), note(), approval("approved")], 1],
  ["actions that overlap up to the end", overlapping(), 2],
];

describe("findCut(view, tenant, from, before)", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.openStore();
  });

  afterEach(() => world.remove());

  for (const [what, drafts, firstKept] of table) {
    it(`${firstKept === drafts.length + 1 ? "passes" : "stays before"} ${what}`, async () => {
      const cut = await cutOf([event("genesis", {}), ...drafts, note()], drafts.length + 1);
      expect(cut).to.deep.equal({ firstKept, removed: firstKept - 1, firstYounger: drafts.length + 1 });
    });
  }

  it("begins where the last pruning ended", async () => {
    const cut = await cutOf([event("genesis", {}), ...done(), note(), note(), note()], 5, 3);
    expect(cut).to.deep.equal({ firstKept: 5, removed: 2, firstYounger: 5 });
  });

  it("takes nothing after the first record that is young enough, though the clock was set back later", async () => {
    const chain = placeChain({ drafts: [event("genesis", {}), note(), note(), note()] });
    const times = chain.map(({ record }) => String(record.time));
    const order = [0, 1, 3, 2].map((at) => times[at] as string);
    await store(chain.map(({ record }, at) => JSON.stringify({ ...record, time: order[at] })));
    expect(await findCut(new StoreView(world.store), "acme", 0, times[3] as string)).to.include({
      firstKept: 2,
      firstYounger: 2,
    });
  });

  it("says where every record is older", async () => {
    expect(await cutOf([event("genesis", {}), note(), note()], 3)).to.include({ firstYounger: null });
  });

  async function cutOf(drafts: readonly Draft[], youngest: number, from = 0): Promise<Cut> {
    const chain = placeChain({ drafts });
    await store(chain.map(({ text }) => text));
    const before = String(chain[youngest]?.record.time ?? "2099-01-01T00:00:00.000Z");
    return findCut(new StoreView(world.store), "acme", from, before);
  }

  async function store(texts: readonly string[]): Promise<void> {
    for (const [seq, text] of texts.entries()) await world.store.put(recordKey("acme", seq), text);
  }
});

/** Each begins before the one before has ended. */
function overlapping(): Draft[] {
  const drafts = [note(), decision("0", "allow")];
  for (let at = 1; at < 5; at++) drafts.push(decision(String(at), "allow"), outcome(String(at - 1), "success"));
  return drafts;
}
