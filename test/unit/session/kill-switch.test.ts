import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { recordKey } from "../../../core/evidence/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../../../core/evidence/record.ts";
import { GatewayError } from "../../../core/kernel/error.ts";
import { killKey } from "../../../core/session/kill.ts";
import { makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const order = { session: "s", reason: "operator", by: "principal", note: null } as const;

describe("KillSwitch", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
  });

  afterEach(() => world.remove());

  describe("kill(tenant, order)", () => {
    it("is in force when it returns, and on record with its entry when it resolves", async () => {
      const recorded = world.killSwitch.kill("acme", { ...order, note: "odd" });
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      expect(await world.evidence.store.get(killKey("acme", "s"))).to.equal(undefined);
      await recorded;
      expect(await world.evidence.store.get(killKey("acme", "s"))).to.include('"note":"odd"');
      expect(await world.events()).to.deep.equal([
        { event: "killed", session: "s", reason: "operator", by: "principal", note: "odd" },
      ]);
      expect(world.killed).to.deep.equal([["s", "operator"]]);
    });

    it("stops that session of that tenant, and no other", async () => {
      await world.killSwitch.kill("acme", order);
      expect(world.killSwitch.isKilled("acme", "t")).to.equal(false);
      expect(world.killSwitch.isKilled("other", "s")).to.equal(false);
    });

    it("throws SESSION_STATE for a stopped session, and records nothing", async () => {
      const first = world.killSwitch.kill("acme", order);
      expectConflict(() => world.killSwitch.kill("acme", order), "killed");
      await first;
      expectConflict(() => world.killSwitch.kill("acme", order), "killed");
      expect((await world.events()).length).to.equal(1);
    });

    it("stays in force where it cannot be recorded, and is recorded once that is possible", async () => {
      await world.evidence.store.close();
      const error = await rejection(world.killSwitch.kill("acme", order));
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      for (let end = Date.now() + 10_000; !world.ledger.writable && Date.now() < end; await sleep(20)) {
        world.evidence.clock.nowMs += 1_000; // repairs come at most once a second
      }
      while ((await world.events()).length === 0) await sleep(20);
      await world.recorded();
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
    });

    it("holds when it comes while the session is being released", async () => {
      await world.killSwitch.kill("acme", order);
      const released = world.killSwitch.release("acme", "s", "principal", "well");
      while (world.killed.length === 1) {
        await new Promise(setImmediate);
        tryKill();
      }
      await released;
      await world.recorded();
      expect((await world.events()).map(({ event }) => event)).to.deep.equal(["killed", "released", "killed"]);
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
    });
  });

  describe("release(tenant, session, by, reason)", () => {
    it("is in force once it is durable, and on record", async () => {
      await world.killSwitch.kill("acme", order);
      const released = world.killSwitch.release("acme", "s", "principal", "well");
      await Promise.resolve();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      await released;
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(false);
      expect((await world.events()).at(-1)).to.deep.equal({
        event: "released",
        session: "s",
        by: "principal",
        reason: "well",
      });
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(false);
    });

    it("rejects with SESSION_STATE for a session that is not stopped, and for the second of two at once", async () => {
      const none = await rejection(world.killSwitch.release("acme", "s", "principal", "well"));
      expect([(none as GatewayError).code, (none as GatewayError).data]).to.deep.equal([
        "SESSION_STATE",
        { state: "active" },
      ]);
      await world.killSwitch.kill("acme", order);
      const both = await Promise.allSettled(
        ["one", "two"].map((reason) => world.killSwitch.release("acme", "s", "principal", reason)),
      );
      expect(both.map(({ status }) => status).toSorted()).to.deep.equal(["fulfilled", "rejected"]);
      expect((await world.events()).map(({ event }) => event)).to.deep.equal(["killed", "released"]);
    });

    it("leaves the session stopped where it cannot be recorded", async () => {
      await world.killSwitch.kill("acme", order);
      world.ledger.refuse("acme", "its chain was tampered with");
      const error = await rejection(world.killSwitch.release("acme", "s", "principal", "well"));
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
    });
  });

  describe("at a start", () => {
    it("stops again what the chain says is stopped, where the entry is gone, and puts that on record", async () => {
      await world.killSwitch.kill("acme", { ...order, note: "odd" });
      await world.evidence.store.del(killKey("acme", "s"));
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      await world.recorded();
      const { items } = await world.killSwitch.list("acme", 10);
      expect(items.map(({ session, by, note }) => [session, by, note])).to.deep.equal([["s", "principal", "odd"]]);
      expect((await world.events()).map(({ event }) => event)).to.deep.equal(["killed", "killed"]);
    });

    it("refuses a tenant whose events cannot be read: nobody knows which of its sessions are stopped", async () => {
      await world.killSwitch.kill("acme", order);
      const record = (await world.evidence.recordsOf()).find(({ kind }) => kind === "session");
      await world.evidence.act();
      await world.evidence.store.put(recordKey("acme", record?.seq ?? -1), "{}");
      await world.restart();
      expect(world.ledger.status()[0]).to.include({ tenant: "acme", state: "refused" });
      expect(await rejection(world.evidence.act())).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    });

    it("leaves stopped what has an entry, whatever the chain says", async () => {
      await world.killSwitch.kill("acme", order);
      await world.killSwitch.release("acme", "s", "principal", "well");
      await world.evidence.store.put(killKey("acme", "s"), "damaged");
      await world.restart();
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
      const { items } = await world.killSwitch.list("acme", 10);
      expect(items.map(({ session, note }) => [session, note])).to.deep.equal([
        ["s", "the entry of this kill is damaged"],
      ]);
      await world.killSwitch.release("acme", "s", "principal", "well");
      expect(world.killSwitch.isKilled("acme", "s")).to.equal(false);
    });
  });

  it("lists the stopped sessions of a tenant page by page, those that wait for the disk among them", async () => {
    for (const session of ["b", "d", "a"]) await world.killSwitch.kill("acme", { ...order, session });
    await world.killSwitch.kill("other", { ...order, session: "c" });
    const waiting = world.killSwitch.kill("acme", { ...order, session: "c" });
    const first = await world.killSwitch.list("acme", 2);
    expect([first.items.map(({ session }) => session), first.next]).to.deep.equal([["a", "b"], "b"]);
    const second = await world.killSwitch.list("acme", 2, "b");
    expect([second.items.map(({ session }) => session), second.next]).to.deep.equal([["c", "d"], null]);
    await waiting;
  });

  it("lets no decision stand dispatched behind a kill, however many race with it [S57]", async () => {
    const actions = Array.from({ length: 100 }, () => newAction({}, "raced"));
    const session = actions[0]?.session.id ?? "";
    const decided = actions.map(async (action, index) => {
      for (let turn = 0; turn < index % 10; turn++) await new Promise(setImmediate);
      if (index === 55) return world.killSwitch.kill("acme", { ...order, session }).then(() => "killed");
      return world.ledger
        .recordDecision(action, makeEvaluation(action), undefined, {
          check: () => world.killSwitch.check(action),
          use: () => undefined,
          operations: () => [],
        })
        .then(() => action.id);
    });
    const settled = await Promise.allSettled(decided);
    const records = await world.evidence.recordsOf();
    const killedAt = records.findIndex(({ kind }) => kind === "session");
    const dispatched = records.filter(isDispatched).filter((record) => record.session.id === session);
    expect(dispatched.length).to.be.above(0).and.below(99);
    expect(dispatched.filter(({ seq }) => seq > killedAt)).to.deep.equal([]);
    const refused = settled.filter((each) => each.status === "rejected");
    expect(refused.length).to.equal(99 - dispatched.length);
    for (const { reason } of refused) expect(reason).to.include({ code: "SESSION_KILLED" });
  });

  it("remembers no more sessions than it was told to, and forgets none that is stopped", async () => {
    await world.killSwitch.kill("acme", order);
    for (let other = 0; other < 10_100; other++) world.killSwitch.isKilled("acme", `other-${other}`);
    expect(world.killSwitch.isKilled("acme", "s")).to.equal(true);
  });

  function tryKill(): void {
    try {
      void world.killSwitch.kill("acme", order);
    } catch (error) {
      expect(error).to.include({ code: "SESSION_STATE" });
    }
  }
});

function expectConflict(call: () => unknown, state: string): void {
  expect(call).to.throw(GatewayError).that.deep.includes({ code: "SESSION_STATE", data: { state } });
}

function isDispatched(record: EvidenceRecord): record is ActionRecord {
  return "effect" in record && record.effect === "dispatched";
}
