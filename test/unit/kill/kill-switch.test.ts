import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import { killKey } from "../../../core/kill/kill.ts";
import { rejection } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const session = { scope: "session", subject: "s" } as const;
const order = { ...session, reason: "operator", by: "principal", note: null } as const;

describe("KillSwitch", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
  });

  afterEach(() => world.remove());

  describe("kill(tenant, order)", () => {
    it("is in force when it returns, and on record with its entry when it resolves", async () => {
      const recorded = world.killSwitch.kill("acme", { ...order, note: "odd" });
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      expect(await world.evidence.store.get(killKey("acme", session))).to.equal(undefined);
      await recorded;
      expect(await world.evidence.store.get(killKey("acme", session))).to.include('"note":"odd"');
      expect(await world.events()).to.deep.equal([
        { event: "killed", scope: "session", session: "s", reason: "operator", by: "principal", note: "odd" },
      ]);
      expect(world.killed).to.deep.equal([["s", "operator"]]);
    });

    it("stops that session of that tenant, and no other", async () => {
      await world.killSwitch.kill("acme", order);
      expect(world.killSwitch.isKilled("acme", { ...session, subject: "t" })).to.equal(false);
      expect(world.killSwitch.isKilled("other", session)).to.equal(false);
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
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      for (let end = Date.now() + 10_000; !world.ledger.writable && Date.now() < end; await sleep(20)) {
        world.evidence.clock.nowMs += 1_000; // repairs come at most once a second
      }
      while ((await world.events()).length === 0) await sleep(20);
      await world.recorded();
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
    });

    it("holds when it comes while the session is being released", async () => {
      await world.killSwitch.kill("acme", order);
      const released = world.killSwitch.release("acme", session, "principal", "well");
      while (world.killed.length === 1) {
        await new Promise(setImmediate);
        tryKill();
      }
      await released;
      await world.recorded();
      expect((await world.events()).map(({ event }) => event)).to.deep.equal(["killed", "released", "killed"]);
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
    });
  });

  describe("release(tenant, session, by, reason)", () => {
    it("is in force once it is durable, and on record", async () => {
      await world.killSwitch.kill("acme", order);
      const released = world.killSwitch.release("acme", session, "principal", "well");
      await Promise.resolve();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      await released;
      expect(world.killSwitch.isKilled("acme", session)).to.equal(false);
      expect((await world.events()).at(-1)).to.deep.equal({
        event: "released",
        scope: "session",
        session: "s",
        by: "principal",
        reason: "well",
      });
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(false);
    });

    it("rejects with SESSION_STATE for a session that is not stopped, and for the second of two at once", async () => {
      const none = await rejection(world.killSwitch.release("acme", session, "principal", "well"));
      expect([(none as GatewayError).code, (none as GatewayError).data]).to.deep.equal([
        "SESSION_STATE",
        { state: "active" },
      ]);
      await world.killSwitch.kill("acme", order);
      const both = await Promise.allSettled(
        ["one", "two"].map((reason) => world.killSwitch.release("acme", session, "principal", reason)),
      );
      expect(both.map(({ status }) => status).toSorted()).to.deep.equal(["fulfilled", "rejected"]);
      expect((await world.events()).map(({ event }) => event)).to.deep.equal(["killed", "released"]);
    });

    it("leaves the session stopped where it cannot be recorded", async () => {
      await world.killSwitch.kill("acme", order);
      world.ledger.refuse("acme", "its chain was tampered with");
      const error = await rejection(world.killSwitch.release("acme", session, "principal", "well"));
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
    });
  });

  describe("at a start", () => {
    it("stops again what the chain says is stopped, where the entry is gone, and puts that on record", async () => {
      await world.killSwitch.kill("acme", { ...order, note: "odd" });
      await world.evidence.store.del(killKey("acme", session));
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      await world.recorded();
      const { items } = await world.killSwitch.list("acme", { limit: 10 });
      expect(items.map(({ subject, by, note }) => [subject, by, note])).to.deep.equal([["s", "principal", "odd"]]);
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
      await world.killSwitch.release("acme", session, "principal", "well");
      await world.evidence.store.put(killKey("acme", session), "damaged");
      await world.restart();
      expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
      const { items } = await world.killSwitch.list("acme", { limit: 10 });
      expect(items.map(({ subject, note }) => [subject, note])).to.deep.equal([
        ["s", "the entry of this kill is damaged"],
      ]);
      await world.killSwitch.release("acme", session, "principal", "well");
      expect(world.killSwitch.isKilled("acme", session)).to.equal(false);
    });
  });

  it("lists the stopped sessions of a tenant page by page, those that wait for the disk among them", async () => {
    for (const subject of ["b", "d", "a"]) await world.killSwitch.kill("acme", { ...order, subject });
    await world.killSwitch.kill("other", { ...order, subject: "c" });
    const waiting = world.killSwitch.kill("acme", { ...order, subject: "c" });
    const first = await world.killSwitch.list("acme", { limit: 2 });
    expect([first.items.map(({ subject }) => subject), first.next]).to.deep.equal([["a", "b"], "session/b"]);
    const second = await world.killSwitch.list("acme", { limit: 2, cursor: "session/b" });
    expect([second.items.map(({ subject }) => subject), second.next]).to.deep.equal([["c", "d"], null]);
    await waiting;
  });

  it("remembers no more sessions than it was told to, and forgets none that is stopped", async () => {
    await world.killSwitch.kill("acme", order);
    for (let other = 0; other < 10_100; other++)
      world.killSwitch.isKilled("acme", { ...session, subject: `other-${other}` });
    expect(world.killSwitch.isKilled("acme", session)).to.equal(true);
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
