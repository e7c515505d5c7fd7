import type { Participant, Participation } from "../action/participant.ts";
import { anonymousKeyId } from "../action/principal.ts";
import type { ApprovalQueue } from "./queue.ts";

/** Reserves an approval for each action that policy holds for review. Without it nothing held can ever run. */
export function approvalParticipant(queue: ApprovalQueue): Participant {
  const participation: Participation = {
    applyVerdict: (pending) => {
      const { action, evaluation } = pending;
      // An anonymous caller has no approvals: nobody could tell its repeated call from another's.
      if (evaluation.decision !== "review" || action.principal.keyId === anonymousKeyId) return;
      return (async () => {
        pending.review = await queue.reserve(action, evaluation);
      })();
    },
    finish: (pending) => {
      if (pending === undefined || pending.review === null) return;
      if (pending.isCommitted) queue.commit(pending.review);
      else queue.rollback(pending.review);
    },
  };
  return { name: "approval", participation };
}
