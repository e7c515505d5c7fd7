import type { ActionEnvelope } from "./envelope.ts";

/**
 * What a person's approval permits: to dispatch this very action, once.
 *
 * INVARIANT: one exists only where an approval was approved and is consumed by it. `core/approval/queue.ts` is the only
 * caller of `grantUse`; the architecture test holds that.
 */
export class ApprovalGrant {
  readonly approvalId: string;
  readonly #actionId: string;
  #spent = false;

  private constructor(approvalId: string, actionId: string) {
    this.approvalId = approvalId;
    this.#actionId = actionId;
  }

  static grantUse(approvalId: string, action: ActionEnvelope): ApprovalGrant {
    return new ApprovalGrant(approvalId, action.id);
  }

  /** Takes the grant. Throws TypeError for a look-alike, for another action, and for a grant already spent. */
  static spend(grant: ApprovalGrant, action: ActionEnvelope): void {
    if (!(#spent in grant)) throw new TypeError("spend: expected an ApprovalGrant made by the queue");
    if (grant.#actionId !== action.id) throw new TypeError("spend: the grant is for another action");
    if (grant.#spent) throw new TypeError("spend: this grant was already spent");
    grant.#spent = true;
  }
}
