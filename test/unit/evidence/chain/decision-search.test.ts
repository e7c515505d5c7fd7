import { expect } from "chai";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import type { Evaluation } from "../../../../core/action/evaluation.ts";
import { uuidV7 } from "../../../../core/action/id.ts";
import { DecisionSearch } from "../../../../core/evidence/chain/decision-search.ts";
import { recordKey } from "../../../../core/evidence/record/key-space.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

interface Made {
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
}

describe("DecisionSearch.find(tenant, id)", () => {
  let world: LedgerWorld;
  let search: DecisionSearch;
  const made: Made[] = [];
  let serial = 0;

  /** A decision at the time of the world's clock. */
  async function decide(tenant = "acme"): Promise<Made> {
    const random = Buffer.alloc(10);
    random.writeUInt32BE(++serial, 4);
    const id = uuidV7(world.clock.nowMs, random);
    const action = newAction({ tenant, id: `${id.slice(0, -1)}${id.endsWith("f") ? "e" : "f"}` });
    const evaluation = { ...makeEvaluation(action, "block"), id };
    await world.ledger.actions.recordDecision(action, evaluation);
    return { action, evaluation };
  }

  before(async () => {
    world = await LedgerWorld.create();
    await world.open();
    search = new DecisionSearch({ store: world.store, ledger: world.ledger });
    for (let index = 0; index < 120; index++) {
      made.push(await decide());
      // Many at one time, then a while of nothing.
      if (index % 20 === 19) world.clock.nowMs += 3_600_000;
    }
  });

  after(() => world.remove());

  it("finds each, by the id of the decision and of its action", async () => {
    for (const { action, evaluation } of made) {
      expect((await search.find("acme", evaluation.id))?.evaluation?.id).to.equal(evaluation.id);
      expect((await search.find("acme", action.id))?.action.id).to.equal(action.id);
    }
  });

  it("finds none of another tenant, none that is unknown, and none that no id names", async () => {
    const foreign = await decide("other");
    expect(await search.find("acme", foreign.evaluation.id)).to.equal(undefined);
    expect((await search.find("other", foreign.evaluation.id))?.tenant).to.equal("other");
    expect(await search.find("nobody", foreign.evaluation.id)).to.equal(undefined);
    const [first] = made as [Made];
    const unknown = [uuidV7(0, Buffer.alloc(10)), uuidV7(2 ** 48 - 1, Buffer.alloc(10))];
    for (const id of [...unknown, first.action.principal.id, "", "x", `${first.evaluation.id} `])
      expect(await search.find("acme", id), id).to.equal(undefined);
  });

  it("does not take the id of a record, or one that stands in another member, for that of a decision", async () => {
    const [{ evaluation }] = made as [Made];
    const record = await search.find("acme", evaluation.id);
    expect(await search.find("acme", record?.id ?? "")).to.equal(undefined);
  });

  it("believes the ledger, not what it found: another text in the store is refused", async () => {
    const { evaluation } = made.at(-1) as Made;
    const record = await search.find("acme", evaluation.id);
    if (record === undefined) throw new Error("expected a record");
    const moved = { ...record, session: { ...record.session, index: 0 } };
    await world.store.put(recordKey("acme", record.seq), JSON.stringify(moved));
    const found = await search.find("acme", evaluation.id).catch((error: Error) => error);
    expect(found).to.satisfy((each: unknown) => each === undefined || each instanceof Error);
    world.ledger.refuse("acme", "for this test");
    const other = made[3] as Made;
    expect(await rejection(search.find("acme", other.evaluation.id))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
  });
});
