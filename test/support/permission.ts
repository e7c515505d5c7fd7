import { ApprovalGrant } from "../../core/action/approval.ts";
import { AuthorizedAction } from "../../core/action/authorized-action.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";

/** The gate's permission for an action: for one that was allowed, or whose review was approved. */
export function permit(action: ActionEnvelope, approved = false): AuthorizedAction {
  const evaluation = {
    id: "evaluation",
    actionId: action.id,
    phase: "input",
    decision: approved ? "review" : "allow",
    verdicts: [],
    shadow: [],
    determining: [],
    byDefault: false,
    approvals: 1,
    risk: 0,
    redactions: [],
    durationUs: 1,
  } as const;
  const durable = { actionId: action.id, evaluationId: evaluation.id, seq: 1 };
  const grant = approved ? ApprovalGrant.grantUse("apr_1", action) : undefined;
  return AuthorizedAction.authorize(action, evaluation, durable, grant);
}
