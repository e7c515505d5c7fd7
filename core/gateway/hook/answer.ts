import type { JsonObject } from "../../action/json.ts";
import { decisiveReason, type Refusal, refusalData, reviewText } from "../../http/refusal.ts";
import type { PermissionResult } from "./permission.ts";

/** The header that names the decision of an answer, beside its body. */
export const decisionHeader = "x-gateway-decision";

/** The answer to an agent that asked. `permitted` alone says whether the agent may act. */
export function permissionAnswer(permission: PermissionResult): JsonObject {
  return permission.kind === "granted" ? grantedAnswer(permission) : refusedAnswer(permission.refusal);
}

function grantedAnswer({ evaluation, approvalId }: Extract<PermissionResult, { kind: "granted" }>): JsonObject {
  const { id, actionId, risk, determining } = evaluation;
  return {
    permitted: true,
    decision: "allow",
    action_id: actionId,
    decision_id: id,
    risk,
    message: approvalId === undefined ? "Allowed by policy." : `Approved: approval ${approvalId} is used up with this.`,
    rules: determining.map(({ rule, message, severity }) => ({ rule, message, severity })),
    ...(approvalId === undefined ? {} : { approval: { id: approvalId, state: "consumed" } }),
    remediation: null,
  };
}

function refusedAnswer(refusal: Refusal): JsonObject {
  const { executed: _, decision, ...data } = refusalData(refusal);
  return {
    permitted: false,
    ...data,
    decision: decision === "review" && refusal.kind === "refused" ? "review" : "block",
    risk: refusal.evaluation.risk,
    message: `${decisiveReason(refusal.evaluation)}.`,
    remediation: remedyOf(refusal),
  };
}

function remedyOf(refusal: Refusal): string {
  if (refusal.kind === "refused" && refusal.review !== null) return reviewText(refusal.review);
  return "Do not repeat this action as it is.";
}
