import { expect } from "chai";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import type { Finding, PolicyRef } from "../../../core/action/policy.ts";
import { riskOf, taintsOf } from "../../../core/session/risk-meter.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { findIn } from "../../support/session-world.ts";

const action = newAction();
const killSwitch: PolicyRef = { kind: "session", name: "kill-switch", version: "1", digest: "", signer: null };

describe("riskOf(evaluation, killSwitch)", () => {
  const cases: readonly (readonly [string, Partial<Finding>, number])[] = [
    ["a tenth of the risk of a rule that blocks", { decision: "block", risk: 70 }, 7],
    ["a tenth of the risk of a rule that asks for review", { decision: "review", risk: 45 }, 4.5],
    ["nothing for a rule that allows", { decision: "allow", risk: 90 }, 0],
    ["what the rule says, whatever its risk", { decision: "block", risk: 90, session_risk: 25 }, 25],
    ["what a rule says that allows", { decision: "allow", risk: 0, session_risk: 3 }, 3],
    ["nothing where the rule says nothing of it", { decision: "block", risk: 90, session_risk: 0 }, 0],
    ["nothing for a rule in shadow mode", { decision: "block", mode: "shadow", session_risk: 50 }, 0],
  ];

  for (const [name, finding, points] of cases) {
    it(`is ${name}`, () => expect(riskOf(findIn(action, finding), killSwitch)).to.equal(points));
  }

  it("sums up all findings of all policies, but for those in shadow mode", () => {
    const one = findIn(action, { decision: "block", session_risk: 5 }, { decision: "review", session_risk: 6 });
    const both: Evaluation = { ...one, verdicts: [...one.verdicts, ...one.verdicts], shadow: one.verdicts };
    expect(riskOf(both, killSwitch)).to.equal(22);
  });
});

describe("taintsOf(action, evaluation)", () => {
  it("names each word once, of rules in shadow mode too", () => {
    const found = findIn(action, { taints: ["a", "b"] }, { mode: "shadow", taints: ["b", "c"] });
    const shadow = findIn(action, { taints: ["d"] }).verdicts;
    expect(taintsOf(action, { ...found, shadow })).to.deep.equal(["a", "b", "c", "d"]);
  });

  it("taints with what an untrusted tool answers, and not by asking it", () => {
    const untrusted = { ...action, untrusted: true } as const;
    const output = { ...makeEvaluation(action), phase: "output" } as const;
    expect(taintsOf(untrusted, output)).to.deep.equal(["untrusted"]);
    expect(taintsOf(action, output)).to.deep.equal([]);
    expect(taintsOf(untrusted, makeEvaluation(action))).to.deep.equal([]);
  });

  it("taints with no answer that nobody gets to see", () => {
    const withheld = { ...findIn(action, { decision: "block", taints: ["a"] }), phase: "output" } as const;
    expect(taintsOf({ ...action, untrusted: true }, withheld)).to.deep.equal([]);
  });
});
