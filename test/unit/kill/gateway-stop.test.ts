import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { killKey, wholeGateway } from "../../../core/kill/kill.ts";
import { KillSwitch } from "../../../core/kill/kill-switch.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const order = { ...wholeGateway, reason: "operator", by: "principal", note: "incident" } as const;

describe("GatewayStop", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
    await world.evidence.act({ tenant: "other" });
  });

  afterEach(() => world.remove());

  async function happened(tenant: string): Promise<readonly unknown[]> {
    return (await world.events(tenant)).map(({ event }) => event);
  }

  function isStopped(tenant: string): boolean {
    return world.killSwitch.evaluate(newAction({ tenant })).decision === "block";
  }

  it("is in force for every tenant when it returns, one that never acted included, and on record when it resolves", async () => {
    const recorded = world.killSwitch.kill("acme", order);
    expect(["acme", "other", "never"].map(isStopped)).to.deep.equal([true, true, true]);
    await recorded;
    for (const tenant of ["acme", "other"]) {
      expect(await world.events(tenant)).to.deep.equal([
        { event: "killed", scope: "gateway", reason: "operator", by: "principal", note: "incident" },
      ]);
    }
    await world.killSwitch.release("acme", wholeGateway, "principal", "over");
    expect(["acme", "other", "never"].map(isStopped)).to.deep.equal([false, false, false]);
    for (const tenant of ["acme", "other"]) {
      expect((await world.events(tenant)).at(-1)).to.deep.equal({
        event: "released",
        scope: "gateway",
        by: "principal",
        reason: "over",
      });
    }
  });

  it("is on the record of tenants that come later, and stays in force after a restart", async () => {
    await world.killSwitch.kill("acme", order);
    await world.ledger.recordEvent("late", "heartbeat", {});
    await world.killSwitch.includeNewTenants();
    await world.ledger.recordEvent("late", "heartbeat", {});
    expect(await happened("late")).to.deep.equal(["killed"]);
    await world.ledger.recordEvent("later", "heartbeat", {});
    await world.restart();
    expect(["acme", "late", "later", "never"].map(isStopped)).to.deep.equal([true, true, true, true]);
    await world.ledger.recordEvent("later", "heartbeat", {});
    expect(await happened("later")).to.deep.equal(["killed"]);
    expect(await happened("acme")).to.deep.equal(["killed"]);
  });

  it("is in force as long as one tenant has it in store or chain: a process may have died between two", async () => {
    await world.killSwitch.kill("acme", order);
    await world.killSwitch.release("acme", wholeGateway, "principal", "over");
    await world.evidence.store.put(killKey("other", wholeGateway), "{}");
    await world.restart();
    expect(["acme", "other"].map(isStopped)).to.deep.equal([true, true]);
    await world.recorded();
    expect(await happened("acme")).to.deep.equal(["killed", "released", "killed"]);
  });

  it("throws SESSION_STATE where it is stopped, and rejects with it where it is not", async () => {
    expect(await rejection(world.killSwitch.release("acme", wholeGateway, "principal", "x"))).to.deep.include({
      code: "SESSION_STATE",
      data: { state: "active" },
    });
    await world.killSwitch.kill("acme", order);
    expect(() => world.killSwitch.kill("other", order))
      .to.throw(GatewayError)
      .that.deep.includes({ code: "SESSION_STATE", data: { state: "killed" } });
    const both = await Promise.allSettled(
      ["one", "two"].map((reason) => world.killSwitch.release("acme", wholeGateway, "principal", reason)),
    );
    expect(both.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected"]);
    expect(await happened("other")).to.deep.equal(["killed", "released"]);
  });

  it("stays in force where its release cannot be put on the record of one tenant, and is recorded again", async () => {
    const broken = new Set<string>();
    const killSwitch = new KillSwitch({
      store: world.evidence.store,
      log: {
        recordEvent: (tenant, ...event) =>
          broken.has(tenant)
            ? Promise.reject(new GatewayError("EVIDENCE_UNAVAILABLE"))
            : world.ledger.recordEvent(tenant, ...event),
      },
      clock: Date.now,
      retryMs: 5,
      tenants: () => ["acme", "other"],
      onKilled: () => undefined,
      onReleased: () => undefined,
      onKill: () => undefined,
      findStop: () => undefined,
      onRelease: () => ({ operations: () => [], end: () => undefined }),
    });
    await killSwitch.kill("acme", order);
    broken.add("other");
    const error = await rejection(killSwitch.release("acme", wholeGateway, "principal", "over"));
    expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    for (const tenant of ["acme", "other", "never"]) {
      expect(() => killSwitch.check(newAction({ tenant }))).to.throw(GatewayError);
    }
    broken.clear();
    while ((await happened("other")).length < 2) await sleep(5);
    await world.recorded();
    expect(await happened("acme")).to.deep.equal(["killed", "released", "killed"]);
    await killSwitch.release("acme", wholeGateway, "principal", "over");
    for (const tenant of ["acme", "other", "never"]) killSwitch.check(newAction({ tenant }));
    expect((await happened("other")).at(-1)).to.equal("released");
    killSwitch.close();
  });

  it("is not held back by a tenant whose evidence is refused, and is in force again where that one is found sound", async () => {
    await world.killSwitch.kill("acme", order);
    world.ledger.refuse("other", "its chain was tampered with");
    await world.killSwitch.release("acme", wholeGateway, "principal", "over");
    expect(isStopped("acme")).to.equal(false);
    await world.restart();
    expect(["acme", "other"].map(isStopped)).to.deep.equal([true, true]);
  });

  it("holds when it comes while it is being released", async () => {
    await world.killSwitch.kill("acme", order);
    const released = world.killSwitch.release("acme", wholeGateway, "principal", "over");
    while (world.killed.length === 1) {
      await new Promise(setImmediate);
      try {
        void world.killSwitch.kill("acme", order);
      } catch (error) {
        expect(error).to.include({ code: "SESSION_STATE" });
      }
    }
    await Promise.allSettled([released]);
    await world.recorded();
    expect(["acme", "other", "never"].map(isStopped)).to.deep.equal([true, true, true]);
    await world.restart();
    expect(["acme", "other", "never"].map(isStopped)).to.deep.equal([true, true, true]);
  });

  it("rejects with EVIDENCE_UNAVAILABLE where no tenant has evidence to record it in, in force nonetheless", async () => {
    for (const tenant of ["acme", "other"]) world.ledger.refuse(tenant, "its chain was tampered with");
    expect(await rejection(world.killSwitch.kill("acme", order))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    expect(isStopped("acme")).to.equal(true);
  });
});
