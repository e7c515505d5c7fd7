import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import { headKey } from "../../../core/session/session-entry.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { findIn, SessionWorld } from "../../support/session-world.ts";

const idOf = (label: string): string => newAction({}, label).session.id;

describe("SessionDirectory", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create({ risk: { killAt: 80, windowMs: 80_000 } });
    for (const [label, points] of [
      ["calm", 0],
      ["worst", 40],
      ["bad", 20],
    ] as const) {
      world.evidence.clock.nowMs += 1_000;
      const action = newAction({}, label);
      await world.decide(action, findIn(action, { decision: "allow", session_risk: points }));
    }
    const other = newAction({ tenant: "other" });
    await world.decide(other);
  });

  afterEach(() => world.remove());

  async function idsBy(sort: "risk" | "last"): Promise<readonly string[]> {
    return (await world.control.sessionDirectory.list("acme", sort, 10)).items.map(({ session }) => session);
  }

  describe("list(tenant, sort, limit, cursor)", () => {
    it("orders the sessions of a tenant by risk, and by when they acted last", async () => {
      expect(await idsBy("risk")).to.deep.equal(["worst", "bad", "calm"].map(idOf));
      expect(await idsBy("last")).to.deep.equal(["bad", "worst", "calm"].map(idOf));
      world.evidence.clock.nowMs += 1_000;
      await world.decide(newAction({}, "calm"));
      expect(await idsBy("last")).to.deep.equal(["calm", "bad", "worst"].map(idOf));
    });

    it("tells how each stands now, whether it is in memory or only in the store", async () => {
      const output = withOutput(newAction({ untrusted: true }, "worst"), "text");
      await world.watch.recordTaints(output, { ...makeEvaluation(output), phase: "output" });
      world.evidence.clock.nowMs += 9_000;
      const expected = {
        session: idOf("worst"),
        state: "active",
        principal: newAction().principal.id,
        risk: 30,
        actions: 1,
        reviews: 0,
        tools: 1,
        taints: ["untrusted"],
        last_at: "2026-05-01T10:00:02.000Z",
      };
      expect((await world.control.sessionDirectory.list("acme", "risk", 1)).items).to.deep.equal([expected]);
      await world.restart();
      expect((await world.control.sessionDirectory.list("acme", "risk", 1)).items).to.deep.equal([expected]);
    });

    it("says which are stopped, and puts the damaged ones first", async () => {
      await world.killSwitch.kill("acme", {
        scope: "session",
        subject: idOf("calm"),
        reason: "operator",
        by: "p",
        note: null,
      });
      await world.restart();
      await world.evidence.store.put(headKey("acme", idOf("bad")), "{}");
      const { items } = await world.control.sessionDirectory.list("acme", "risk", 10);
      expect(items.map(({ session, state }) => [session, state])).to.deep.equal([
        [idOf("bad"), "damaged"],
        [idOf("worst"), "active"],
        [idOf("calm"), "stopped"],
      ]);
      expect(items[0]).to.deep.equal({ session: idOf("bad"), state: "damaged" });
    });

    it("gives pages that time alone does not shift", async () => {
      const first = await world.control.sessionDirectory.list("acme", "risk", 2);
      world.evidence.clock.nowMs += 30_000;
      const second = await world.control.sessionDirectory.list("acme", "risk", 2, first.next ?? "");
      const ids = [...first.items, ...second.items].map(({ session }) => session);
      expect(ids).to.deep.equal(["worst", "bad", "calm"].map(idOf));
      expect(second.next).to.equal(null);
    });
  });

  describe("show(tenant, session)", () => {
    it("tells the last actions, as long as they are in memory", async () => {
      const shown = world.control.sessionDirectory.show("acme", idOf("worst"));
      expect(shown).to.include({ risk: 39, actions: 1 });
      expect(shown.history.map(({ tool, at }) => [tool, at])).to.deep.equal([
        ["write_file", "2026-05-01T10:00:02.000Z"],
      ]);
      await world.restart();
      expect(world.control.sessionDirectory.show("acme", idOf("worst"))).to.deep.equal({ ...shown, history: [] });
    });

    it("throws NOT_FOUND for a session of another tenant", () => {
      const foreign = newAction({ tenant: "other" }).session.id;
      for (const ask of ["show", "checkKnown"] as const) {
        expect(() => world.control.sessionDirectory[ask]("acme", foreign))
          .to.throw()
          .that.includes({ code: "NOT_FOUND" });
        expect(() => world.control.sessionDirectory[ask]("other", foreign)).to.not.throw();
      }
    });
  });
});
