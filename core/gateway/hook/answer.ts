import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { decisiveReason, type Refusal, refusalData, reviewText } from "../../http/refusal.ts";
import type { HookVerdict } from "./agent-form.ts";
import type { PermissionResult } from "./permission.ts";

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

/** The same answer for a hook: what an agent may not do again is a block, whatever it was held for. */
export function hookVerdict(permission: PermissionResult): HookVerdict {
  const { code, decision, decision_id: id, message, remediation, approval } = permissionAnswer(permission);
  const isPending = decision === "review" && code === "REVIEW_REQUIRED";
  const how = isPending && isJsonObject(approval) ? ` To approve: \`gateway approvals approve ${approval.id}\`.` : "";
  const next = remediation === null ? "" : ` ${remediation}`;
  return {
    decision: decision === "allow" ? "allow" : isPending ? "review" : "block",
    reason: `${decision === "allow" ? "" : isPending ? "Held for review: " : "Blocked: "}${message}${next}${how} Decision ${id}.`,
    ...(isJsonObject(approval) ? { approval } : {}),
  };
}
