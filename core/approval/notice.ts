import type { Approval } from "../action/approval.ts";
import type { Notice } from "../notify/webhook-notifier.ts";

/**
 * What people outside are told of an approval; undefined for a use, which nobody has to act on. No argument and no
 * comment is in it, and nothing that could stand in for a reviewer's key.
 */
export function noticeOf(approval: Approval, time: string): Notice | undefined {
  const { id, tenant, state, action, evaluation, principal, session } = approval;
  if (state === "consumed") return undefined;
  return {
    type: `approval.${state}`,
    tenant,
    time,
    data: {
      id,
      state,
      capability: action.capability,
      protocol: action.protocol,
      target: action.target,
      tool: action.tool,
      rules: evaluation.rules,
      risk: evaluation.risk,
      tainted: approval.tainted ?? [],
      principal: principal.id,
      session: session.id,
      required: approval.required,
      endorsed: approval.endorsements.length,
      requested_at: approval.requested_at,
      expires_at: approval.expires_at,
      reviewer: approval.reviewer ?? null,
      reason: approval.reason ?? null,
      break_glass: approval.break_glass !== undefined,
    },
  };
}
