import type { ApprovalReservation } from "../action/approval.ts";
import type { Participant, Participation } from "../action/participant.ts";
import { anonymousKeyId } from "../action/principal.ts";
import type { ApprovalQueue } from "./queue.ts";

/** Reserves an approval for each action that policy holds for review. Without it nothing held can ever run. */
export function approvalParticipant(queue: ApprovalQueue): Participant {
  const begin = (): Participation => {
    let reservation: ApprovalReservation | undefined;
    return {
      applyVerdict: (pending) => {
        const { action, evaluation } = pending;
        // An anonymous caller has no approvals: nobody could tell its repeated call from another's.
        if (evaluation.decision !== "review" || action.principal.keyId === anonymousKeyId) return;
        return (async () => {
          reservation = await queue.reserve(action, evaluation);
          pending.review = reservation;
        })();
      },
      finish: (isCommitted) => {
        if (reservation === undefined) return;
        if (isCommitted) queue.commit(reservation);
        else queue.rollback(reservation);
      },
    };
  };
  return { name: "approval", begin };
}
