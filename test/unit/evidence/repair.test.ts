import { expect } from "chai";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";

describe("when a write fails", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    await world.act();
  });

  afterEach(() => world.remove());

  it("rejects all that waits, with a text that shows no path, and warns with the cause", async () => {
    await world.store.close();
    const all = await Promise.all(Array.from({ length: 5 }, () => rejection(world.act())));
    for (const error of all) {
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE", detail: "the last write failed; see the log" });
    }
    expect(world.warnings).to.deep.equal([
      { message: "evidence_write_failed", fields: { cause: "Database is not open" } },
    ]);
    expect(world.ledger.status()).to.have.nested.property("[0].state", "failed");
  });

  it("mends itself on demand, at most once a second, and leaves no gap", async () => {
    await breakOnce();
    await rejection(world.act());
    await mended();
    await world.act();
    expect(world.warnings.at(-1)).to.deep.equal({ message: "evidence_repaired", fields: { unknown: 0 } });
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 5 });
    await breakOnce();
    await rejection(world.act());
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(world.ledger.status()).to.have.nested.property("[0].state", "failed");
    world.clock.nowMs += 1_000;
    await rejection(world.act());
    await mended();
    await world.act();
  });

  it("takes the outcome of a decision made before, and settles one whose outcome was refused", async () => {
    const [kept, lost] = [newAction(), newAction()];
    await world.ledger.actions.recordDecision(kept, makeEvaluation(kept));
    await world.ledger.actions.recordDecision(lost, makeEvaluation(lost));
    await breakOnce();
    const error = await rejection(world.ledger.actions.recordOutcome(lost, { status: "success", output: null }));
    expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    await mended();
    await world.ledger.actions.recordOutcome(kept, { status: "success", output: null });
    const outcomes = (await world.recordsOf()).filter((each) => each.kind === "outcome") as ActionRecord[];
    expect(outcomes.slice(1).map((each) => [each.action.id, each.effect, each.reason])).to.have.deep.members([
      [lost.id, "unknown", "evidence could not be written when the outcome was due"],
      [kept.id, "success", undefined],
    ]);
  });

  it("does not let a tenant begin while its chain cannot be marked", async () => {
    await world.ledger.close();
    expect(await rejection(world.act({ tenant: "new" }))).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "a new chain cannot be marked; see the log",
    });
  });

  /** The store is closed under the ledger and one write fails of it; a repair opens it again. */
  async function breakOnce(): Promise<void> {
    await world.store.close();
    await rejection(world.ledger.recordEvent("acme", "heartbeat", {}));
  }

  async function mended(): Promise<void> {
    while (world.ledger.status()[0]?.state !== "ready" || world.warnings.at(-1)?.message !== "evidence_repaired") {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
});
