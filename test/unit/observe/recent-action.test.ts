import { expect } from "chai";
import { RecentActions, recentLimits } from "../../../core/observe/recent-action.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";

/** Notes a decision with so many characters of arguments, and returns its id. */
function note(recent: RecentActions, tenant: string, characters = 10): string {
  const action = newAction({ tenant, arguments: { text: "x".repeat(characters) } });
  const evaluation = makeEvaluation(action);
  recent.recorded(action, evaluation);
  return evaluation.id;
}

const found = (recent: RecentActions, tenant: string, ids: readonly string[]): number =>
  ids.filter((id) => recent.find(tenant, id) !== undefined).length;

describe("RecentActions", () => {
  it("finds a decision of the tenant by its id and by its action's, and none of another", () => {
    const recent = new RecentActions(recentLimits({ storeValues: true }));
    const action = newAction();
    const evaluation = makeEvaluation(action);
    recent.recorded(action, evaluation);
    expect(recent.find("acme", evaluation.id)).to.deep.equal({ action, evaluation });
    expect(recent.find("acme", action.id)).to.deep.equal({ action, evaluation });
    expect(recent.find("other", evaluation.id)).to.equal(undefined);
    expect(recent.find("acme", "none")).to.equal(undefined);
  });

  it("takes the id of an action for the decision about its input", () => {
    const recent = new RecentActions(recentLimits({ storeValues: true }));
    const action = newAction();
    const output = { ...makeEvaluation(action), phase: "output" } as const;
    recent.recorded(action, output);
    expect(recent.find("acme", action.id)).to.equal(undefined);
    const input = makeEvaluation(action);
    recent.recorded(action, input);
    expect(recent.find("acme", action.id)?.evaluation).to.equal(input);
    expect(recent.find("acme", output.id)?.evaluation).to.equal(output);
  });

  it("counts what it is told twice once", () => {
    const recent = new RecentActions({ decisions: 2, bytes: 1_000_000 });
    const action = newAction();
    const evaluation = makeEvaluation(action);
    for (let turn = 0; turn < 10; turn++) recent.recorded(action, evaluation);
    const other = note(recent, "acme");
    expect(found(recent, "acme", [evaluation.id, other])).to.equal(2);
  });

  it("remembers so many and no more: the oldest go", () => {
    const recent = new RecentActions({ decisions: 10, bytes: 1_000_000 });
    const ids = Array.from({ length: 25 }, () => note(recent, "acme"));
    expect(found(recent, "acme", ids)).to.equal(10);
    expect(found(recent, "acme", ids.slice(-10))).to.equal(10);
  });

  it("remembers no more bytes than it may, and nothing that takes a great share of them", () => {
    const recent = new RecentActions({ decisions: 1_000, bytes: 200_000 });
    const ids = Array.from({ length: 100 }, () => note(recent, "acme", 1_000));
    expect(found(recent, "acme", ids)).to.be.within(30, 100);
    expect(found(recent, "acme", ids.slice(0, 10))).to.equal(0);
    const kept = found(recent, "acme", ids);
    const vast = note(recent, "acme", 100_000);
    expect(recent.find("acme", vast)).to.equal(undefined);
    expect(found(recent, "acme", ids), "nothing had to go for it").to.equal(kept);
  });

  it("counts a history with each action that has it, however often it was measured", () => {
    const past = Object.freeze({
      at: 0,
      protocol: "mcp",
      tool: "x".repeat(200),
      target: "y".repeat(200),
      capability: "read",
      decision: "allow",
      dispatched: true,
      hosts: Object.freeze([]),
      paths: Object.freeze(["p".repeat(256)]),
    } as const);
    const kept = (length: number): number => {
      const recent = new RecentActions({ decisions: 1_000, bytes: 1_000_000 });
      const history = Object.freeze(Array.from({ length }, () => past));
      const ids = Array.from({ length: 600 }, () => {
        const action = { ...newAction(), history };
        const evaluation = makeEvaluation(action);
        recent.recorded(action, evaluation);
        return evaluation.id;
      });
      return found(recent, "acme", ids);
    };
    expect(kept(0)).to.be.within(300, 500);
    expect(kept(32)).to.be.within(10, 25);
  });

  it("forgets nothing of a quiet tenant for a loud one", () => {
    const recent = new RecentActions({ decisions: 100, bytes: 1_000_000 });
    const quiet = Array.from({ length: 20 }, () => note(recent, "quiet"));
    const loud = Array.from({ length: 500 }, () => note(recent, "loud"));
    expect(found(recent, "quiet", quiet)).to.equal(20);
    expect(found(recent, "loud", loud)).to.equal(80);
  });

  it("remembers nothing where no values are to be kept", () => {
    const recent = new RecentActions(recentLimits({ storeValues: false }));
    expect(recent.find("acme", note(recent, "acme"))).to.equal(undefined);
  });
});
