import type { ApprovalStep } from "../action/approval.ts";
import { AuthorizedAction, type DurableDecision } from "../action/authorized-action.ts";
import type { DecisionCommitHook } from "../action/commit-hook.ts";
import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { anonymousKeyId } from "../action/principal.ts";
import type { Presented } from "../approval/queue.ts";

/** Where decisions become durable before anything is dispatched. */
export interface DecisionLog {
  /**
   * Resolves once the decision is on disk, together with what `step` does to an approval. Rejects with
   * EVIDENCE_UNAVAILABLE, and with what the commit hook's check throws; then nothing may be dispatched.
   */
  recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step: ApprovalStep | undefined,
    commitHook: DecisionCommitHook,
  ): Promise<DurableDecision>;
}

/** Where an action waits that policy holds for review, and where it is found again once a person approved it. */
interface ReviewDesk {
  present(action: ActionEnvelope, evaluation: Evaluation): Promise<Presented>;
  confirm(presented: Presented): void;
  withdraw(presented: Presented): void;
}

/** An action while it is decided. */
export interface Visit extends DecisionCommitHook {
  /** As policy is to see it. */
  readonly action: ActionEnvelope;
  /**
   * Counts what policy said of it, before that is recorded, which may stop the session. `asks`: whether a person is asked
   * about it, or was asked before.
   */
  count(evaluation: Evaluation, asks: "nothing" | "review" | "again"): void;
}

export interface GateParts {
  readonly log: DecisionLog;
  readonly desk: ReviewDesk;
}

/** What the review desk said of an action that goes no further. */
export type Waiting = Exclude<Presented, { readonly kind: "granted" }>;

/** A permission, or none: then `review` says what became of an action that was held. */
export type Gated =
  | { readonly permission: AuthorizedAction }
  | { readonly permission: null; readonly review: Waiting | null };

/**
 * Turns an evaluation into permission, or into a refusal, and never before the decision is durable. Rejects with
 * SESSION_KILLED or TICKET_STATE where session or ticket changed since the action was judged; then nothing is on record.
 * The only place that makes an AuthorizedAction.
 */
export async function passGate(parts: GateParts, visit: Visit, evaluation: Evaluation): Promise<Gated> {
  if (evaluation.phase !== "input") throw new TypeError(`passGate: expected phase input, got ${evaluation.phase}`);
  const { action } = visit;
  // Nobody can be asked about a caller that nobody knows.
  if (evaluation.decision === "review" && action.principal.keyId !== anonymousKeyId) {
    return passReview(parts, visit, evaluation);
  }
  visit.count(evaluation, "nothing");
  const durable = await parts.log.recordDecision(action, evaluation, undefined, visit);
  // COMMIT POINT: the decision is on disk; a crash from here on leaves a decision without outcome, which recovery finds.
  if (evaluation.decision !== "allow") return { permission: null, review: null };
  return { permission: AuthorizedAction.authorize(action, evaluation, durable) };
}

async function passReview({ log, desk }: GateParts, visit: Visit, evaluation: Evaluation): Promise<Gated> {
  const { action } = visit;
  const presented = await desk.present(action, evaluation);
  const step = "step" in presented ? presented.step : undefined;
  let durable: DurableDecision;
  try {
    visit.count(evaluation, presented.kind === "held" && presented.isNew ? "review" : "again");
    durable = await log.recordDecision(action, evaluation, step, visit);
  } catch (error) {
    desk.withdraw(presented);
    throw error;
  }
  // COMMIT POINT: with the decision, the approval is pending, or used up, whatever happens from here on.
  desk.confirm(presented);
  if (presented.kind !== "granted") return { permission: null, review: presented };
  return { permission: AuthorizedAction.authorize(action, evaluation, durable, presented.grant) };
}
