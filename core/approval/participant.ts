import type { ApprovalReservation } from "../action/approval.ts";
import type { Participant, Participation, PendingDecision } from "../action/participant.ts";
import { anonymousKeyId } from "../action/principal.ts";
import type { ApprovalQueue } from "./queue.ts";

/** Reserves an approval for each action that policy holds for review. Without it nothing held can ever run. */
export function approvalParticipant(queue: ApprovalQueue): Participant {
  return { name: "approval", begin: () => new ApprovalParticipation(queue) };
}

class ApprovalParticipation implements Participation {
  readonly #queue: ApprovalQueue;
  #reservation: ApprovalReservation | undefined;

  constructor(queue: ApprovalQueue) {
    this.#queue = queue;
  }

  /** An anonymous caller has no approvals: nobody could tell its repeated call from another's. */
  applyVerdict(pending: PendingDecision): Promise<void> | undefined {
    const { action, evaluation } = pending;
    return evaluation.decision === "review" && action.principal.keyId !== anonymousKeyId
      ? this.#reserve(pending)
      : undefined;
  }

  finish(isCommitted: boolean): void {
    if (this.#reservation === undefined) return;
    if (isCommitted) this.#queue.commit(this.#reservation);
    else this.#queue.rollback(this.#reservation);
  }

  async #reserve(pending: PendingDecision): Promise<void> {
    this.#reservation = await this.#queue.reserve(pending.action, pending.evaluation);
    pending.review = this.#reservation;
  }
}
