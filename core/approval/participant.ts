import type { Participant } from "../action/participant.ts";
import { anonymousKeyId } from "../action/principal.ts";
import type { ApprovalQueue } from "./queue.ts";

/** Reserves an approval for each action that policy holds for review. Without it nothing held can ever run. */
export function approvalParticipant(queue: ApprovalQueue): Participant {
  return {
    name: "approval",
    participation: {
      async reserveReview(pending) {
        const { action, evaluation, readDefinition } = pending;
        // An anonymous caller has no approvals: nobody could tell its repeated call from another's.
        if (action.principal.keyId !== anonymousKeyId)
          pending.review = await queue.reserve(action, evaluation, readDefinition);
      },
      settleReview(review, isCommitted) {
        if (isCommitted) queue.commit(review);
        else queue.rollback(review);
      },
    },
  };
}
