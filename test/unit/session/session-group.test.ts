import { expect } from "chai";
import { type ActionEnvelope, withOutput } from "../../../core/action/envelope.ts";
import type { SessionState } from "../../../core/action/session-state.ts";
import { groupId, headKey } from "../../../core/session/session-entry.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { dayMs, findIn, type SessionSettings, SessionWorld } from "../../support/session-world.ts";

const { tenant, principal } = newAction();
const risky = { decision: "block", session_risk: 30 } as const;

/** An action of the same principal under this label, which works on this task. */
function actionOf(label: string, task: string | null = null): ActionEnvelope {
  return newAction({ task }, label);
}

describe("sessions of one principal", () => {
  let world: SessionWorld;

  async function start(settings: SessionSettings = {}): Promise<void> {
    world = await SessionWorld.create(settings);
  }

  afterEach(() => world.remove());

  function seen(label: string, task: string | null = null): SessionState {
    const state = world.watch.describe(actionOf(label, task)).session_state;
    if (state === undefined) throw new Error("expected the action to have its session's state");
    return state;
  }

  const act = async (
    label: string,
    task: string | null = null,
    ...found: Parameters<typeof findIn>[1][]
  ): Promise<void> => {
    const action = actionOf(label, task);
    await world.decide(action, found.length === 0 ? makeEvaluation(action) : findIn(action, ...found));
  };

  async function taint(label: string, task: string | null = null): Promise<void> {
    const action = withOutput({ ...actionOf(label, task), untrusted: true }, "text");
    await world.watch.recordTaints(action, makeEvaluation(action));
  }

  const taintsOf = (label: string, task: string | null = null): readonly string[] =>
    seen(label, task).taints.map(({ name }) => name);

  function isStopped(label: string, task: string | null = null): boolean {
    return world.killSwitch.evaluate(actionOf(label, task)).decision === "block";
  }

  function order(label: string, change: "kill" | "release"): Promise<void> {
    const target = { scope: "session", subject: actionOf(label).session.id } as const;
    if (change === "release") return world.killSwitch.release(tenant, target, "principal", "seen to");
    return world.killSwitch.kill(tenant, { ...target, reason: "operator", by: "principal", note: null });
  }

  it("begin with the risk and the taints of all others, over a restart too", async () => {
    await start();
    await act("one", null, risky);
    await taint("one");
    expect([seen("new").risk, taintsOf("new")]).to.deep.equal([30, ["untrusted"]]);
    await world.restart();
    expect([seen("new").risk, taintsOf("new")]).to.deep.equal([30, ["untrusted"]]);
  });

  it("share no history and no count of tools", async () => {
    await start();
    await act("one");
    expect(seen("new")).to.include({ actions: 0, tools: 0, new_tool: true });
    expect(world.watch.describe(actionOf("new")).history).to.deep.equal([]);
  });

  it("are stopped by the risk of all of them, each below the threshold", async () => {
    await start({ risk: { killAt: 80 } });
    for (const label of ["one", "two"]) await act(label, null, risky);
    expect(world.killed).to.deep.equal([]);
    await act("three", null, risky);
    expect(world.killed).to.deep.equal([[actionOf("three").session.id, "risk"]]);
    expect(["one", "three", "new"].map((label) => isStopped(label))).to.deep.equal([true, true, true]);
  });

  it("are not mixed up where they work on tasks of their own", async () => {
    await start({ risk: { killAt: 80 } });
    await taint("one", "task-a");
    for (let time = 0; time < 2; time++) await act("one", "task-a", risky);
    expect(seen("two", "task-b")).to.deep.include({ risk: 0, taints: [] });
    expect([seen("new", "task-a").risk, taintsOf("new", "task-a")]).to.deep.equal([60, ["untrusted"]]);
    expect([seen("new").risk, taintsOf("new")], "without a task").to.deep.equal([60, ["untrusted"]]);
    await act("one", "task-a", risky);
    expect(isStopped("two", "task-b")).to.equal(false);
    expect([isStopped("new", "task-a"), isStopped("new")]).to.deep.equal([true, true]);
    await act("two", "task-b", { decision: "block", session_risk: 79 });
    expect(world.killed.length).to.equal(1);
  });

  it("count the actions of a task together, and those beside each other", async () => {
    await start();
    await act("one", "task-a");
    await act("two", "task-a");
    expect([seen("new", "task-a").actions, seen("new", "task-b").actions, seen("new").actions]).to.deep.equal([
      2, 0, 0,
    ]);
    const visit = world.watch.begin(actionOf("three", "task-a"));
    expect(seen("new", "task-a").actions).to.equal(3);
    visit.finish();
    await world.restart();
    expect(seen("new", "task-a").actions).to.equal(2);
  });

  it("are stopped while one of them is, whoever stopped it, and say which and why", async () => {
    await start();
    await act("one");
    const killed = order("one", "kill");
    expect(isStopped("new")).to.equal(true);
    expect(() => world.killSwitch.check(actionOf("new")))
      .to.throw()
      .that.includes({ code: "SESSION_KILLED" });
    await killed;
    const [finding] = world.killSwitch.evaluate(actionOf("new")).findings;
    expect(finding).to.include({ rule: "session.killed" });
    expect(finding?.message).to.match(
      /^session `session-v1-\w+` is stopped until an operator or admin of its tenant releases it, and with it every other session of this principal that has no task manifest of its own$/,
    );
    await world.restart();
    expect([isStopped("one"), isStopped("new"), isStopped("new", "task-b")]).to.deep.equal([true, true, false]);
    await order("one", "release");
    expect([isStopped("one"), isStopped("new")]).to.deep.equal([false, false]);
    await world.restart();
    expect(isStopped("new")).to.equal(false);
  });

  it("stay stopped while another one of them is", async () => {
    await start();
    for (const label of ["one", "two"]) await act(label);
    await order("one", "kill");
    await order("two", "kill");
    await order("one", "release");
    expect([isStopped("one"), isStopped("two"), isStopped("new")]).to.deep.equal([true, true, true]);
    await order("two", "release");
    expect(isStopped("new")).to.equal(false);
  });

  it("are cancelled in flight with the one that is stopped, but for those of other tasks", async () => {
    await start();
    for (const [label, task] of [
      ["one", null],
      ["two", null],
      ["three", "task-b"],
    ] as const)
      await act(label, task);
    await order("one", "kill");
    const covered = ["two", "three", "unknown"].map((label) =>
      world.watch.isStoppedWith(tenant, actionOf(label).session.id, principal.id),
    );
    expect(covered).to.deep.equal([true, false, false]);
  });

  it("lose what they carry together by a reset of one of them, and keep their own", async () => {
    await start();
    for (const label of ["one", "two"]) {
      await act(label, null, risky);
      await taint(label);
    }
    await world.watch.reset(tenant, actionOf("one").session.id, "principal", "seen");
    expect(seen("new")).to.deep.include({ risk: 0, taints: [] });
    expect([seen("two").risk, taintsOf("two")]).to.deep.equal([30, ["untrusted"]]);
    await world.restart();
    expect(seen("new")).to.deep.include({ risk: 0, taints: [] });
  });

  it("refuse to act where the state they share is damaged, until the principal is reset", async () => {
    await start();
    await act("one", null, risky);
    await world.restart();
    await world.evidence.store.put(headKey(tenant, principal.id), "{}");
    expect(() => seen("new"))
      .to.throw()
      .that.includes({ code: "SESSION_DAMAGED" });
    await world.watch.reset(tenant, principal.id, "principal", "lost");
    expect(seen("new")).to.include({ risk: 0 });
    expect(seen("one")).to.include({ risk: 30 });
  });

  it("carry nothing any more after the days of retention without an action, and all of it before", async () => {
    await start();
    await taint("one");
    for (let day = 0; day < 3; day++) {
      world.evidence.clock.nowMs += dayMs * 0.9;
      await act("two");
      await world.control.sessionSweep.sweep();
    }
    expect(taintsOf("new")).to.deep.equal(["untrusted"]);
    world.evidence.clock.nowMs += dayMs + 3_600_001;
    await world.control.sessionSweep.sweep();
    expect(taintsOf("new")).to.deep.equal([]);
    expect(await world.evidence.store.get(headKey(tenant, groupId(principal.id, null)))).to.equal(undefined);
  });
});
