import type { Presented } from "../approval/queue.ts";
import type { ApprovalStep } from "../kernel/approval-step.ts";
import { AuthorizedAction, type DurableDecision } from "../kernel/authorized-action.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import { anonymousKeyId } from "../kernel/principal.ts";

/** Where decisions become durable before anything is dispatched. */
export interface DecisionLog {
  /**
   * Resolves once the decision is on disk, together with what `step` does to an approval. Rejects with
   * EVIDENCE_UNAVAILABLE, and with what `check` throws; then nothing may be dispatched. An action that is not blocked is
   * checked in the turn in which its decision gets its place in the chain.
   */
  recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step: ApprovalStep | undefined,
    check: (action: ActionEnvelope) => void,
  ): Promise<DurableDecision>;
}

/** Where an action waits that policy holds for review, and where it is found again once a person approved it. */
export interface ReviewDesk {
  present(action: ActionEnvelope, evaluation: Evaluation): Promise<Presented>;
  confirm(presented: Presented): void;
  withdraw(presented: Presented): void;
}

/** What may stop a session at any moment. */
export interface SessionSwitch {
  /** Throws SESSION_KILLED for an action of a stopped session. */
  check(action: ActionEnvelope): void;
}

export interface ReviewCount {
  /** Counts a new review, which may stop the session that asked for it. */
  count(tenant: string, session: string): void;
}

export interface GateParts {
  readonly log: DecisionLog;
  readonly desk: ReviewDesk;
  readonly killSwitch: SessionSwitch;
  readonly reviews: ReviewCount;
}

/** What the review desk said of an action that goes no further. */
export type Waiting = Exclude<Presented, { readonly kind: "granted" }>;

/** A permission, or none: then `review` says what became of an action that was held. */
export type Gated =
  | { readonly permission: AuthorizedAction }
  | { readonly permission: null; readonly review: Waiting | null };

/**
 * Turns an evaluation into permission, or into a refusal, and never before the decision is durable. Rejects with
 * SESSION_KILLED where the session was stopped since the action was judged; then nothing is on record.
 * The only place that makes an AuthorizedAction.
 */
export async function passGate(parts: GateParts, action: ActionEnvelope, evaluation: Evaluation): Promise<Gated> {
  if (evaluation.phase !== "input") throw new TypeError(`passGate: expected phase input, got ${evaluation.phase}`);
  // Nobody can be asked about a caller that nobody knows.
  if (evaluation.decision === "review" && action.principal.keyId !== anonymousKeyId) {
    return passReview(parts, action, evaluation);
  }
  const durable = await parts.log.recordDecision(action, evaluation, undefined, (late) => parts.killSwitch.check(late));
  // COMMIT POINT: the decision is on disk; a crash from here on leaves a decision without outcome, which recovery finds.
  if (evaluation.decision !== "allow") return { permission: null, review: null };
  return { permission: AuthorizedAction.authorize(action, evaluation, durable) };
}

async function passReview(parts: GateParts, action: ActionEnvelope, evaluation: Evaluation): Promise<Gated> {
  const { log, desk, killSwitch, reviews } = parts;
  const presented = await desk.present(action, evaluation);
  const step = "step" in presented ? presented.step : undefined;
  let durable: DurableDecision;
  try {
    if (presented.kind === "held" && presented.isNew) reviews.count(action.tenant, action.session.id);
    durable = await log.recordDecision(action, evaluation, step, (late) => killSwitch.check(late));
  } catch (error) {
    desk.withdraw(presented);
    throw error;
  }
  // COMMIT POINT: with the decision, the approval is pending, or used up, whatever happens from here on.
  desk.confirm(presented);
  if (presented.kind !== "granted") return { permission: null, review: presented };
  return { permission: AuthorizedAction.authorize(action, evaluation, durable, presented.grant) };
}
