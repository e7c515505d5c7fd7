import type { Approval, ExpiryReason } from "../action/approval.ts";
import { forgetOldest } from "../action/recent-map.ts";

/** An approval of the same action that holds no more, for the words to whoever asks again. */
export interface FormerApproval {
  readonly id: string;
  readonly state: Approval["state"];
  readonly reason?: ExpiryReason;
}

const most = 10_000;

/** What became of the last approval of an action: a bounded memory that decides nothing. */
export class FormerApprovals {
  readonly #byFingerprint = new Map<string, FormerApproval>();

  add(approval: Approval): void {
    const { fingerprint } = approval;
    this.#byFingerprint.delete(fingerprint);
    this.#byFingerprint.set(fingerprint, formerOf(approval));
    forgetOldest(this.#byFingerprint, most);
  }

  find(fingerprint: string): FormerApproval | undefined {
    return this.#byFingerprint.get(fingerprint);
  }
}

function formerOf({ id, state, reason }: Approval): FormerApproval {
  return reason === undefined ? { id, state } : { id, state, reason };
}
