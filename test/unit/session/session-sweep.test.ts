import { expect } from "chai";
import type { SessionState } from "../../../core/action/session-state.ts";
import { headKey, headRange } from "../../../core/session/session-entry.ts";
import { newAction, newAgentAction } from "../../support/ledger-world.ts";
import { dayMs, findIn, SessionWorld } from "../../support/session-world.ts";

const idOf = (label: string): string => newAgentAction(label).session.id;

describe("SessionSweep", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
  });

  afterEach(() => world.remove());

  async function act(label: string, points = 0): Promise<void> {
    const action = newAgentAction(label);
    await world.decide(action, findIn(action, { decision: "allow", session_risk: points, taints: ["seen"] }));
  }

  function later(ms: number): void {
    world.evidence.clock.nowMs += ms;
  }

  function stateOf(label: string): SessionState | undefined {
    return world.watch.describe(newAgentAction(label)).session_state;
  }

  async function kept(): Promise<readonly string[]> {
    return world.evidence.store.keys(headRange("acme")).all();
  }

  it("forgets a session that is silent for longer than it was told, and not one a moment sooner", async () => {
    await act("old", 7);
    later(1);
    await act("young");
    later(dayMs);
    await world.control.sessionSweep.sweep();
    expect(await kept()).to.deep.equal([headKey("acme", idOf("young"))]);
    expect(stateOf("old")).to.deep.include({ actions: 0, taints: [] });
    expect(stateOf("young")).to.include({ actions: 1 });
  });

  it("leaves a summary of all that it forgot, and a record of each step", async () => {
    await act("one", 7);
    await act("one", 7);
    await act("two", 30);
    const since = new Date(world.evidence.clock.nowMs + 1).toISOString();
    later(dayMs + 1);
    await world.control.sessionSweep.sweep();
    await act("three", 3);
    later(dayMs + 1);
    await world.restart();
    await world.control.sessionSweep.sweep();
    const { items, forgotten } = await world.control.sessionDirectory.list("acme", "last", 10);
    expect(items).to.deep.equal([]);
    expect(forgotten).to.deep.equal({ sessions: 3, actions: 4, highest_risk: 30 });
    const events = await world.events();
    expect(events.map(({ event }) => event)).to.deep.equal(["forgotten", "forgotten"]);
    expect(events[0]).to.deep.equal({ event: "forgotten", silent_since: since });
  });

  it("forgets none that is stopped, in use, or damaged", async () => {
    for (const label of ["stopped", "used", "damaged", "gone"]) await act(label);
    await world.killSwitch.kill("acme", {
      scope: "session",
      subject: idOf("stopped"),
      reason: "operator",
      by: "p",
      note: null,
    });
    await world.evidence.store.put(headKey("acme", idOf("damaged")), "{}");
    later(dayMs + 1);
    const visit = world.watch.begin(newAgentAction("used"));
    await world.control.sessionSweep.sweep();
    visit.finish();
    expect(await kept()).to.have.members(["stopped", "used", "damaged"].map((label) => headKey("acme", idOf(label))));
  });

  it("keeps a session that comes back while it is swept", async () => {
    await act("back");
    later(dayMs + 1);
    const swept = world.control.sessionSweep.sweep();
    await Promise.all([swept, act("back")]);
    await world.restart();
    expect(stateOf("back")?.actions).to.be.oneOf([1, 2]);
    expect((await kept()).length).to.equal(1);
  });

  it("goes through many in steps that leave room for others", async () => {
    for (let n = 0; n < 450; n++) await world.decide(newAction({}, `many-${n}`));
    later(dayMs + 1);
    let turns = 0;
    const count = setInterval(() => turns++, 0);
    await world.control.sessionSweep.sweep();
    clearInterval(count);
    expect([await kept(), (await world.events()).length]).to.deep.equal([[], 3]);
    expect(turns).to.be.at.least(2);
  });

  it("forgets nothing where that cannot be recorded, and says so", async () => {
    await act("old");
    later(dayMs + 1);
    const closed = world.evidence.store.close();
    world.control.sessionSweep.start();
    await world.control.sessionSweep.close();
    await closed;
    expect(world.sweepFailures.length).to.equal(1);
    await world.restart();
    expect(stateOf("old")?.actions).to.equal(1);
  });
});
