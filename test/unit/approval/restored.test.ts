import { expect } from "chai";
import { expireRestored } from "../../../core/approval/restore.ts";
import { ApprovalWorld } from "../../support/approval-world.ts";
import { newAction } from "../../support/ledger-world.ts";

describe("expireRestored(options, tenants)", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });
  afterEach(() => world.remove());

  async function approved(name: string): Promise<string> {
    const id = await world.hold(newAction({ tool: name }));
    await world.approve(id);
    return id;
  }

  /** The states as the store has them once a gateway has started on it again. */
  async function statesAfter(ids: readonly string[], restored: boolean): Promise<(readonly [string, string?])[]> {
    await world.approvals.close();
    const { store, clock, ledger } = world.ledger;
    if (restored) await expireRestored({ store, journal: ledger.approvals, clock: clock.now }, ["acme"]);
    await world.restart();
    const all = await Promise.all(ids.map((id) => world.approvals.store.find("acme", id)));
    return all.map(({ state, reason }) => (reason === undefined ? [state] : [state, reason]));
  }

  it("ends what is pending or approved, on record; a start alone would go on with both [S70, R9-6]", async () => {
    const ids = [await world.hold(newAction({ tool: "first" })), await approved("second")];
    expect(await statesAfter(ids, false)).to.deep.equal([["pending"], ["approved"]]);
    expect(await statesAfter(ids, true)).to.deep.equal([
      ["expired", "restored"],
      ["expired", "restored"],
    ]);
    const told = (await world.ledger.recordsOf()).flatMap((record) => ("detail" in record ? [record.detail] : []));
    expect(told.filter(({ reason }) => reason === "restored").map(({ id }) => id)).to.have.members(ids);
  });

  it("leaves what is used as it is [S70, R9-6]", async () => {
    const action = newAction({ tool: "third" });
    const id = await world.hold(action);
    await world.approve(id);
    expect((await world.attempt({ ...newAction({ tool: "third" }) })).permitted).to.equal(true);
    expect(await statesAfter([id], true)).to.deep.equal([["consumed"]]);
  });

  it("lets nothing through that was approved before [S70, R9-6]", async () => {
    const id = await approved("fourth");
    await statesAfter([id], true);
    expect((await world.attempt(newAction({ tool: "fourth" }))).permitted).to.equal(false);
  });
});
