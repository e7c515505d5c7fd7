import type { ApprovalReservation, ApprovalStep } from "../action/approval.ts";
import { AuthorizedAction, type DurableDecision } from "../action/authorized-action.ts";
import type { DecisionCommitHook } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Participation, PendingDecision } from "../action/participant.ts";

/** Makes decisions durable before anything is dispatched. */
export interface DecisionLog {
  /**
   * Resolves once the decision is on disk, together with the approval step and the writes of `hooks`. Rejects with
   * EVIDENCE_UNAVAILABLE, and with what a check of `hooks` throws; then nothing may be dispatched.
   */
  recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step: ApprovalStep | undefined,
    hooks: readonly DecisionCommitHook[],
  ): Promise<DurableDecision>;
}

/** The state of an action that is held or refused by review. */
export type ReviewState = Exclude<ApprovalReservation, { readonly kind: "granted" }>;

/** A permission, or none: then `review` is the state of its review, null for an action that policy blocked. */
export type GateResult =
  | { readonly permission: AuthorizedAction }
  | { readonly permission: null; readonly review: ReviewState | null };

/**
 * Commits a decision and returns the permission it gives, if any; never a permission before the decision is durable.
 * Rejects with SESSION_KILLED or TICKET_STATE where session or ticket changed since the action was judged; then nothing is
 * on record. The only place that makes an AuthorizedAction.
 */
export async function authorize(
  log: DecisionLog,
  participations: readonly Participation[],
  pending: PendingDecision,
): Promise<GateResult> {
  const { action, evaluation } = pending;
  if (evaluation.phase !== "input") throw new TypeError(`authorize: expected phase input, got ${evaluation.phase}`);
  if (evaluation.decision === "review") for (const each of participations) await each.reserveReview?.(pending);
  for (const each of participations) {
    const applied = each.applyVerdict?.(pending);
    if (applied !== undefined) await applied;
  }
  const { review } = pending;
  const step = review !== null && "step" in review ? review.step : undefined;
  const durable = await log.recordDecision(action, evaluation, step, participations);
  // COMMIT POINT: the decision is on disk, and with it an approval is pending or used up. A crash from here on leaves a
  // decision without outcome, which recovery finds.
  pending.isCommitted = true;
  if (review?.kind === "granted") {
    return { permission: AuthorizedAction.authorize(action, evaluation, durable, review.grant) };
  }
  if (evaluation.decision !== "allow") return { permission: null, review };
  return { permission: AuthorizedAction.authorize(action, evaluation, durable) };
}
