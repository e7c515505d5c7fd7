import type { ApprovalReservation } from "../../core/action/approval.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Evaluation } from "../../core/action/evaluation.ts";
import { deepFreeze } from "../../core/action/json.ts";
import type { Participant, Participation, PendingDecision } from "../../core/action/participant.ts";
import { approvalParticipant } from "../../core/approval/participant.ts";
import { FactReader } from "../../core/fact/fact-reader.ts";
import type { Evaluator, Road } from "../../core/road/run.ts";
import type { ApprovalWorld } from "./approval-world.ts";

/** A judged action that is about to be committed. */
export function pendingOf(
  action: ActionEnvelope,
  evaluation: Evaluation,
  review: ApprovalReservation | null = null,
): PendingDecision {
  return { action, evaluation, review, isCommitted: false };
}

/** The action as policy sees it, with the context of one participant. */
export function seenBy(action: ActionEnvelope, { context }: Participation): ActionEnvelope {
  return deepFreeze({ ...action, ...context });
}

/** A road on a real ledger, with the approvals of `world` and whatever else takes part; nobody subscribes. */
export function roadOf(
  { ledger, approvals }: ApprovalWorld,
  policies: Evaluator,
  newId: () => string,
  others: readonly Participant[] = [],
): Road {
  return {
    facts: new FactReader(),
    participants: [approvalParticipant(approvals.queue), ...others],
    policies,
    log: ledger.ledger.actions,
    subscribers: [],
    newId,
  };
}
