import { expect } from "chai";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import { compactRange } from "../../../core/store/rewrite.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";

describe("what a reviewer may compare with", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
  });

  afterEach(() => world.remove());

  function argumentsAt(seq: number): Promise<JsonObject | undefined> {
    return world.ledger.approvals.arguments("acme", seq);
  }

  describe("ApprovalEvidence.arguments(tenant, seq)", () => {
    it("gives back what was asked for, whatever its members are called", async () => {
      const args = JSON.parse('{"path":"/etc/hosts","__proto__":{"x":1},"n":[null,-5,true],"o":{}}') as JsonObject;
      await world.act({ arguments: args }); // records 1 and 2
      expect(await argumentsAt(1)).to.deep.equal(args);
      await world.act({ arguments: {} });
      expect(await argumentsAt(3)).to.deep.equal({});
    });

    it("gives nothing where a field of it was erased, or was never kept", async () => {
      await world.act({ arguments: { patient: "Anna", dose: 5 } });
      const request = { of: { seq: 1 }, fields: ["arguments.patient"], reason: "asked", by: "dpo" };
      await world.ledger.erase("acme", request, (range) => compactRange(world.store, range));
      expect(await argumentsAt(1)).to.equal(undefined);
      await world.close();
      await world.open({ fieldPolicy: { storeValues: false, storeLabels: true, redactFields: [] } });
      await world.act({ arguments: { patient: "Berta" } });
      const last = (await world.recordsOf()).length - 2;
      expect(await argumentsAt(last)).to.equal(undefined);
    });

    it("gives nothing where the fields do not say whether they were an object", async () => {
      const vast = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`m${index}`, index]));
      for (const args of ["text", 5, { "": 5 }, vast] as readonly Json[]) {
        await world.act({ arguments: args });
        expect(await argumentsAt((await world.recordsOf()).length - 2)).to.equal(undefined);
      }
    });

    it("gives nothing for a record that is no decision, or none at all", async () => {
      await world.act();
      for (const seq of [0, 2, 99]) expect(await argumentsAt(seq)).to.equal(undefined);
    });
  });

  describe("ApprovalEvidence.session(tenant, id, most)", () => {
    it("gives the last records in order, and what is known of the whole session", async () => {
      const { session } = await world.act();
      await world.act({}, "another");
      await world.act();
      const tail = await world.ledger.approvals.session("acme", session.id, 3);
      expect(tail?.summary).to.include({ id: session.id, records: 4, allow: 2 });
      expect(tail?.records.map(({ session: place, kind }) => [place.index, kind])).to.deep.equal([
        [1, "outcome"],
        [2, "decision"],
        [3, "outcome"],
      ]);
    });

    it("gives nothing of a session that the tenant does not have", async () => {
      const { session } = await world.act();
      expect(await world.ledger.approvals.session("other", session.id, 3)).to.equal(undefined);
      expect(await world.ledger.approvals.session("acme", "none", 3)).to.equal(undefined);
    });
  });
});
