import type { Approval, FormerApproval } from "../action/approval.ts";
import { forgetOldest } from "../action/recent-map.ts";

const maxFormer = 10_000;

/** Remembers how the last approval of each action ended, for the text of later refusals. Bounded; decides nothing. */
export class FormerApprovals {
  readonly #byFingerprint = new Map<string, FormerApproval>();

  add(approval: Approval): void {
    const { fingerprint } = approval;
    this.#byFingerprint.delete(fingerprint);
    this.#byFingerprint.set(fingerprint, formerOf(approval));
    forgetOldest(this.#byFingerprint, maxFormer);
  }

  find(fingerprint: string): FormerApproval | undefined {
    return this.#byFingerprint.get(fingerprint);
  }
}

function formerOf({ id, state, reason }: Approval): FormerApproval {
  return reason === undefined ? { id, state } : { id, state, reason };
}
