import { expect } from "chai";
import { type ActionEnvelope, everyUpstream, withOutput } from "../../../core/action/envelope.ts";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import { deepFreeze } from "../../../core/action/json.ts";
import type { SessionState } from "../../../core/action/session-state.ts";
import { headKey } from "../../../core/session/session-entry.ts";
import { makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";
import { pendingOf } from "../../support/road-world.ts";
import { findIn, heldAgain, type SessionSettings, SessionWorld } from "../../support/session-world.ts";

const { tenant, session } = newAction();
const key = headKey(tenant, session.id);

describe("SessionWatch", () => {
  let world: SessionWorld;

  async function start(settings: SessionSettings = {}): Promise<void> {
    world = await SessionWorld.create(settings);
  }

  afterEach(() => world.remove());

  /** What a next action would be shown. */
  function seen(changed: Partial<ActionEnvelope> = {}, label?: string): SessionState {
    const state = world.watch.describe(newAction(changed, label)).session_state;
    if (state === undefined) throw new Error("expected the action to be shown its session's state");
    return state;
  }

  async function act(changed: Partial<ActionEnvelope> = {}, ...found: Parameters<typeof findIn>[1][]): Promise<void> {
    const action = newAction(changed);
    await world.decide(action, found.length === 0 ? makeEvaluation(action) : findIn(action, ...found));
  }

  /** The same output of an untrusted tool, once for each. */
  function learn(changed: Partial<ActionEnvelope> = {}): Promise<void> {
    const action = withOutput(newAction({ ...changed, untrusted: true }), "text");
    return world.watch.recordTaints(action, makeEvaluation(action));
  }

  describe("what an action is shown", () => {
    it("counts what was let through, the reviews that were asked for, and the tools that were used", async () => {
      await start();
      await act();
      await act({ tool: "read_file" });
      await act({}, { decision: "block" });
      await act({ tool: "delete_file" }, { decision: "review" });
      expect(seen()).to.include({ actions: 2, reviews: 1, tools: 2, new_tool: false });
      expect(seen({ tool: "delete_file" })).to.include({ new_tool: true });
      expect(seen({}, "another session")).to.include({ actions: 0, reviews: 0, tools: 0, new_tool: true });
    });

    it("tells the last 32 actions, the latest first, and what became of each", async () => {
      await start();
      for (let n = 0; n < 33; n++) {
        world.evidence.clock.nowMs += 1_000;
        await act({ tool: `tool-${n}` }, { decision: n % 2 === 0 ? "allow" : "block" });
      }
      const { history = [] } = world.watch.describe(newAction());
      expect(history.map(({ tool }) => tool)).to.deep.equal(Array.from({ length: 32 }, (_, n) => `tool-${32 - n}`));
      expect(history.slice(0, 2).map(({ decision, dispatched }) => [decision, dispatched])).to.deep.equal([
        ["allow", true],
        ["block", false],
      ]);
      expect(history[0]?.at).to.equal(world.evidence.clock.nowMs);
    });

    it("is frozen to its last leaf", async () => {
      await start();
      await learn();
      await act();
      const action = newAction();
      const { session_state: state, history } = deepFreeze({ ...action, ...world.watch.describe(action) });
      for (const each of [state, state?.taints, state?.taints[0], history, history?.[0], history?.[0]?.hosts]) {
        expect(Object.isFrozen(each)).to.equal(true);
      }
    });

    it("counts those that are being judged beside it, each once, until they are decided", async () => {
      await start();
      const actions = Array.from({ length: 5 }, () => newAction());
      const beside = actions.map((action) => ({ action, visit: world.watch.begin(action) }));
      expect(seen().actions).to.equal(5);
      const [first, second] = beside;
      if (first === undefined || second === undefined) throw new Error("expected visits");
      first.visit.applyVerdict(pendingOf(first.action, makeEvaluation(first.action)));
      first.visit.operations(true);
      expect(seen().actions, "decided, and not left yet").to.equal(5);
      second.visit.applyVerdict(pendingOf(second.action, findIn(second.action, { decision: "block" })));
      second.visit.operations(false);
      expect(seen().actions, "one of them blocked").to.equal(4);
      for (const { visit } of beside) visit.finish();
      expect(seen().actions).to.equal(1);
    });

    it("does not take what goes to every upstream into the past", async () => {
      await start();
      await act({ target: everyUpstream, tool: "tools/list" });
      expect(seen()).to.include({ actions: 0, tools: 0 });
      expect(world.watch.describe(newAction()).history).to.deep.equal([]);
      expect(await world.evidence.store.get(key)).to.equal(undefined);
    });
  });

  describe("risk", () => {
    const risky = { decision: "block", session_risk: 30 } as const;

    it("rises by what is found, whatever it goes to, and is written with the decision", async () => {
      await start();
      await act({}, risky);
      await act({ target: everyUpstream, tool: "tools/list" }, risky);
      expect(seen().risk).to.equal(60);
      await world.restart();
      expect(seen().risk).to.equal(60);
    });

    it("drains with time, over a restart too", async () => {
      await start({ risk: { killAt: 80, windowMs: 80_000 } });
      await act({}, risky);
      world.evidence.clock.nowMs += 10_000;
      await world.restart();
      expect(seen().risk).to.equal(20);
      world.evidence.clock.nowMs -= 10_000;
      expect(seen().risk).to.equal(30);
    });

    it("stops the session in the turn in which it comes to the threshold [R3.2-10]", async () => {
      await start({ risk: { killAt: 60 } });
      await act({}, risky);
      const action = newAction();
      const visit = world.watch.begin(action);
      expect(() => world.killSwitch.check(action)).to.not.throw();
      visit.applyVerdict(pendingOf(action, findIn(action, { decision: "allow", session_risk: 29 })));
      expect(world.killed).to.deep.equal([]);
      visit.applyVerdict(pendingOf(action, findIn(action, { decision: "allow", session_risk: 1 })));
      expect(world.killed).to.deep.equal([[session.id, "risk"]]);
      expect(() => world.killSwitch.check(action))
        .to.throw()
        .that.includes({ code: "SESSION_KILLED" });
      visit.finish();
      await world.recorded();
      expect((await world.events()).at(-1)).to.include({
        event: "killed",
        reason: "risk",
        note: "the risk score reached 60 of 60",
      });
    });

    it("stops nobody where the threshold is 0, and rises nonetheless", async () => {
      await start({ risk: { killAt: 0 } });
      for (let n = 0; n < 10; n++) await act({}, risky);
      expect([world.killed, seen().risk]).to.deep.equal([[], 300]);
    });

    it("stops nobody in shadow mode, and counts each time a session comes to the threshold", async () => {
      await start({ risk: { killAt: 60, mode: "shadow", windowMs: 60_000 } });
      for (let n = 0; n < 5; n++) await act({}, risky);
      expect([world.killed, world.observed.wouldKill]).to.deep.equal([[], 1]);
      world.evidence.clock.nowMs += 150_000;
      for (let n = 0; n < 5; n++) await act({}, risky);
      expect([world.killed, world.observed.wouldKill, seen().risk]).to.deep.equal([[], 2, 150]);
    });

    it("does not rise by a question that is asked again, nor by one that was answered", async () => {
      await start();
      const action = newAction();
      const visit = world.watch.begin(action);
      visit.applyVerdict(pendingOf(action, findIn(action, { decision: "review", session_risk: 30 }), heldAgain));
      visit.finish();
      expect(seen()).to.include({ risk: 0, reviews: 0 });
    });

    it("rises by what is found in an answer, and is written with the outcome", async () => {
      await start();
      const action = newAction();
      await world.decide(action);
      const hook = world.watch.applyOutputVerdict(action, findIn(action, risky));
      await world.ledger.actions.recordOutcome(action, { status: "success", output: {} }, undefined, hook);
      hook?.end();
      expect(seen().risk).to.equal(30);
      await world.restart();
      expect(seen().risk).to.equal(30);
    });

    it("stops the session with an answer that is too much", async () => {
      await start({ risk: { killAt: 30 } });
      const action = newAction();
      world.watch.applyOutputVerdict(action, findIn(action, { decision: "allow", session_risk: 29 }))?.end();
      expect(world.killed).to.deep.equal([]);
      world.watch.applyOutputVerdict(action, findIn(action, { decision: "allow", session_risk: 1 }))?.end();
      expect(world.killed).to.deep.equal([[session.id, "risk"]]);
    });

    it("does not rise by what a stopped session attempts", async () => {
      await start({ risk: { killAt: 60 } });
      await act({}, risky, risky);
      const action = newAction();
      const { ref } = world.killSwitch;
      const [own] = findIn(action, risky).verdicts;
      const killed = { ...world.killSwitch.evaluate(action), policy: ref, durationUs: 1 };
      if (own === undefined) throw new Error("expected a verdict");
      await world.decide(action, { ...findIn(action, risky), verdicts: [own, killed] });
      expect([killed.decision, seen().risk]).to.deep.equal(["block", 60]);
    });
  });

  describe("learn(action, evaluation)", () => {
    it("taints in the same turn, and is durable and on record when it resolves", async () => {
      await start();
      const learned = learn({ tool: "fetch", target: "web" });
      expect(seen().taints.map(({ name, tool, target }) => [name, tool, target])).to.deep.equal([
        ["untrusted", "fetch", "web"],
      ]);
      expect(await world.events()).to.deep.equal([]);
      await learned;
      const [event] = await world.events();
      expect(event).to.include({ event: "tainted", session: session.id, tool: "fetch", target: "web" });
      expect(event?.taints).to.deep.equal(["untrusted"]);
      await world.restart();
      expect(seen().taints.map(({ name }) => name)).to.deep.equal(["untrusted"]);
      expect(world.observed.tainted).to.equal(1);
    });

    it("resolves for nobody before the taint is durable, whoever brought it in first", async () => {
      await start();
      await Promise.race([learn(), learn()]);
      expect((await world.events()).length).to.equal(1);
      await learn();
      expect((await world.events()).length).to.equal(1);
    });

    it("rejects as long as it cannot be recorded, and the taint stays in force", async () => {
      await start();
      world.ledger.refuse("acme", "its chain was tampered with");
      for (let time = 0; time < 2; time++) {
        expect(await rejection(learn())).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      }
      expect(seen().taints.map(({ name }) => name)).to.deep.equal(["untrusted"]);
    });

    it("keeps what is decided while it is recorded", async () => {
      await start();
      const [learned] = [learn(), await act()];
      await learned;
      await world.restart();
      expect(seen()).to.include({ actions: 1 });
      expect(seen().taints.length).to.equal(1);
    });

    it("refuses an answer, and an action, that would taint a session with more than 64 words", async () => {
      await start();
      const words = Array.from({ length: 64 }, (_, n) => `w${n}`);
      const action = withOutput(newAction(), "text");
      const found = (taints: readonly string[]): Evaluation => ({ ...findIn(action, { taints }), phase: "output" });
      await world.watch.recordTaints(action, found(words));
      await world.watch.recordTaints(action, found(["w0"]));
      expect(await rejection(world.watch.recordTaints(action, found(["one-more"])))).to.include({
        code: "TAINT_LIMIT",
      });
      const next = newAction();
      expect(await rejection(world.decide(next, findIn(next, { taints: ["one-more"] })))).to.include({
        code: "TAINT_LIMIT",
      });
      expect(seen().taints.map(({ name }) => name)).to.deep.equal(words);
    });
  });

  it("taints with what an action brings in when it is let through, and not when it is not", async () => {
    await start();
    await act({}, { decision: "block", taints: ["blocked"] });
    await act({}, { decision: "allow", taints: ["sent"] });
    await world.restart();
    expect(seen().taints.map(({ name }) => name)).to.deep.equal(["sent"]);
  });

  describe("reset(tenant, session, by, reason)", () => {
    it("takes risk and taints away, keeps what was done, and is on record", async () => {
      await start();
      await learn();
      await act({}, { decision: "allow", session_risk: 40 });
      await world.watch.reset(tenant, session.id, "principal", "seen");
      const clean = { risk: 0, actions: 1, tools: 1, taints: [] };
      expect(seen()).to.deep.include(clean);
      await act({}, { decision: "block" });
      await world.restart();
      expect(seen()).to.deep.include({ ...clean, risk: 2 });
      expect((await world.events()).at(-1)).to.deep.equal({
        event: "reset",
        session: session.id,
        by: "principal",
        reason: "seen",
      });
    });

    it("changes nothing where it cannot be recorded", async () => {
      await start();
      await learn();
      await act({}, { decision: "allow", session_risk: 40 });
      world.ledger.refuse("acme", "its chain was tampered with");
      const error = await rejection(world.watch.reset(tenant, session.id, "principal", "seen"));
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect([seen().risk, seen().taints.length]).to.deep.equal([40, 1]);
    });

    it("puts back what it took where the disk fails", async () => {
      await start();
      await learn();
      await act({}, { decision: "allow", session_risk: 40 });
      const closed = world.evidence.store.close();
      const error = await rejection(world.watch.reset(tenant, session.id, "principal", "seen"));
      await closed;
      expect(error).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect([seen().risk, seen().taints.length]).to.deep.equal([40, 1]);
    });

    it("mends a session whose head is damaged, which may not act before", async () => {
      await start();
      await act();
      await world.restart();
      await world.evidence.store.put(key, '{"risk":');
      expect(() => seen())
        .to.throw()
        .that.includes({ code: "SESSION_DAMAGED" });
      expect(await rejection(act())).to.include({ code: "SESSION_DAMAGED" });
      await world.watch.reset(tenant, session.id, "principal", "lost");
      await act();
      expect(seen()).to.deep.include({ actions: 1, risk: 0, taints: [] });
    });

    it("rejects with NOT_FOUND for a session that nothing is known of, and records nothing", async () => {
      await start();
      expect(await rejection(world.watch.reset(tenant, "s", "principal", "seen"))).to.include({ code: "NOT_FOUND" });
      expect(await world.events()).to.deep.equal([]);
    });
  });

  describe("a release of the session", () => {
    const risky = { decision: "block", session_risk: 60 } as const;

    it("takes its risk away with it, so that the next finding does not stop it again", async () => {
      await start({ risk: { killAt: 60 } });
      await learn();
      await act({}, risky);
      await world.recorded();
      const target = { scope: "session", subject: session.id } as const;
      await world.killSwitch.release(tenant, target, "principal", "seen to");
      expect(seen()).to.include({ risk: 0 });
      expect(seen().taints.length).to.equal(1);
      await world.restart();
      await act({}, { decision: "block", session_risk: 1 });
      expect(seen().risk).to.equal(1);
      expect(world.killSwitch.isKilled(tenant, target)).to.equal(false);
    });

    it("is possible where its state is damaged, or nothing is known of it", async () => {
      await start();
      await act();
      await world.restart();
      await world.evidence.store.put(key, "{}");
      for (const subject of [session.id, "never-acted"]) {
        const target = { scope: "session", subject } as const;
        await world.killSwitch.kill(tenant, { ...target, reason: "operator", by: "principal", note: null });
        await world.killSwitch.release(tenant, target, "principal", "seen to");
        expect(world.killSwitch.isKilled(tenant, target)).to.equal(false);
      }
      expect(await world.evidence.store.get(key)).to.equal("{}");
    });

    it("of its principal leaves its risk", async () => {
      await start();
      await act({}, risky);
      const target = { scope: "principal", subject: newAction().principal.id } as const;
      await world.killSwitch.kill(tenant, { ...target, reason: "operator", by: "principal", note: null });
      await world.killSwitch.release(tenant, target, "principal", "seen to");
      expect(seen().risk).to.equal(60);
    });
  });

  it("lets nothing be decided where the store cannot be read", async () => {
    await start();
    await world.evidence.store.close();
    expect(() => world.watch.begin(newAction()))
      .to.throw()
      .that.includes({ code: "EVIDENCE_UNAVAILABLE" });
    expect(() => world.watch.describe(newAction()))
      .to.throw()
      .that.includes({ code: "EVIDENCE_UNAVAILABLE" });
  });
});
