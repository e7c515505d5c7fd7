import { expect } from "chai";
import { AuthorizedAction, type DurableDecision } from "../../../core/action/authorized-action.ts";
import type { Decision } from "../../../core/action/decision.ts";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import { makeAction } from "../../support/action.ts";

const action = makeAction();
const durable: DurableDecision = { actionId: action.id, evaluationId: "e1", seq: 1 };

function evaluation(decision: Decision, actionId = action.id): Evaluation {
  return {
    id: "e1",
    actionId,
    phase: "input",
    decision,
    verdicts: [],
    shadow: [],
    determining: [],
    byDefault: false,
    approvals: 1,
    risk: 0,
    redactions: [],
    durationUs: 0,
  };
}

describe("AuthorizedAction", () => {
  it("is made from an allow that is durable, and spent once", () => {
    const permission = AuthorizedAction.authorize(action, evaluation("allow"), durable);
    expect(AuthorizedAction.spend(permission)).to.equal(action);
    expect(() => AuthorizedAction.spend(permission)).to.throw(TypeError, "already dispatched");
  });

  for (const decision of ["review", "block"] as const) {
    it(`cannot be made from ${decision}`, () => {
      expect(() => AuthorizedAction.authorize(action, evaluation(decision), durable)).to.throw(
        TypeError,
        "expected `allow`",
      );
    });
  }

  it("cannot be made from another action's evaluation or another evaluation's record", () => {
    expect(() => AuthorizedAction.authorize(action, evaluation("allow", "other"), durable)).to.throw(
      TypeError,
      "another action",
    );
    const foreign = { ...durable, evaluationId: "e2" };
    expect(() => AuthorizedAction.authorize(action, evaluation("allow"), foreign)).to.throw(
      TypeError,
      "another evaluation",
    );
  });

  it("cannot be imitated", () => {
    const forged = Object.create(AuthorizedAction.prototype, { action: { value: action } }) as AuthorizedAction;
    expect(() => AuthorizedAction.spend(forged)).to.throw(TypeError, "made by the gate");
    expect(() => AuthorizedAction.spend({ action } as unknown as AuthorizedAction)).to.throw(
      TypeError,
      "made by the gate",
    );
  });
});
