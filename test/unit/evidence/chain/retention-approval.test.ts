import { expect } from "chai";
import { pruneApprovals } from "../../../../core/approval/history.ts";
import { recordKey } from "../../../../core/evidence/record/key-space.ts";
import type { Pruned } from "../../../../core/evidence/retention/retention.ts";
import { compactRange } from "../../../../core/store/rewrite.ts";
import { ApprovalWorld, reviewer } from "../../../support/approval-world.ts";
import { newAction } from "../../../support/ledger-world.ts";

const call = (path: string): ReturnType<typeof newAction> => newAction({ arguments: { path } });

describe("pruning and approvals", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  it("deletes a use that is over with its approval; the history no longer lists it", async () => {
    const id = await world.hold(call("a")); // record 1
    await world.approve(id); // 2
    expect((await world.attempt(call("a"))).permitted).to.equal(true); // 3 and 4
    await world.approvals.review.deny(await world.hold(call("b")), reviewer("rita"), "a name in a comment"); // 5 and 6
    const cut = nextMinute();
    const kept = await world.hold(call("c"));
    expect(await prune(cut)).to.include({ firstKept: 7, records: 6 });
    const left = await world.ledger.store.keys({ gte: "acme/approval/", lt: "acme/approval0" }).all();
    expect(left).to.deep.equal([`acme/approval/${kept}`]);
    await world.restart();
    expect((await world.approve(kept)).state).to.equal("approved");
    expect((await world.attempt(call("c"))).permitted).to.equal(true);
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
  });

  for (const [what, approveFirst] of [
    ["approved and may yet be used", true],
    ["waiting for a review", false],
  ] as const) {
    it(`keeps what is ${what}, the action it holds, and all that came after`, async () => {
      await world.ledger.act(); // records 1 and 2
      const id = await world.hold(call("a")); // 3
      if (approveFirst) await world.approve(id);
      await world.ledger.act();
      const cut = nextMinute();
      await world.ledger.act();
      expect(await prune(cut)).to.include({ firstKept: 3, records: 2 });
      expect(await world.ledger.store.get(recordKey("acme", 3, "held"))).to.be.a("string");
      await world.restart();
      if (!approveFirst) await world.approve(id);
      expect((await world.attempt(call("a"))).permitted).to.equal(true);
      expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
    });
  }

  it("keeps an approval whole that was used later", async () => {
    await world.ledger.act(); // records 1 and 2
    await world.approve(await world.hold(call("a"))); // 3 and 4
    const cut = nextMinute();
    await world.attempt(call("a"));
    expect(await prune(cut)).to.include({ firstKept: 3, records: 2, firstYounger: 5 });
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
  });

  function nextMinute(): string {
    world.pass(60_000);
    return new Date(world.ledger.clock.nowMs).toISOString();
  }

  function prune(before: string): Promise<Pruned> {
    const { store, ledger } = world.ledger;
    return ledger.prune(
      "acme",
      { before, by: "dpo" },
      {
        compact: (range) => compactRange(store, range),
        forget: (first) => pruneApprovals({ store, journal: ledger.approvals }, "acme", first),
      },
    );
  }
});
