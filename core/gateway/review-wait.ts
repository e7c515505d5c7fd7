import type { Approval } from "../action/approval.ts";
import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { ApprovalStore } from "../approval/approval-store.ts";
import type { ReviewState } from "../road/authorize.ts";
import type { RunResult } from "../road/run.ts";

const maxWaits = 1_000;
const maxWaitsEach = 64;

/** An action that was not run. */
export type RefusedRun = Extract<RunResult<never>, { readonly kind: "refused" }>;
export type HeldReview = Extract<ReviewState, { readonly kind: "held" }>;

interface ReviewWaitsOptions {
  readonly book: Pick<ApprovalStore, "decided">;
  /** Called with the number of waiting requests each time it changes. */
  readonly onCount: (count: number) => void;
}

/** A waiting request. Aborting `end` with an error refuses the request with it; without one it is answered as held. */
interface Wait {
  readonly principal: Principal;
  readonly end: AbortController;
}

/** A wait for a review: at most `maxMs`, and until one of `ends` aborts. */
interface WantedWait {
  readonly principal: Principal;
  readonly maxMs: number;
  readonly ends: readonly AbortSignal[];
}

/**
 * Lets requests wait for the review of what they ask for: 1,000 at a time, 64 of a principal. One beyond that, or while the
 * gateway stops, is answered at once.
 */
export class ReviewWaits {
  readonly #options: ReviewWaitsOptions;
  readonly #waits = new Set<Wait>();
  #stopping = false;

  constructor(options: ReviewWaitsOptions) {
    this.#options = options;
  }

  /** Returns false where a further request of the principal may not wait. */
  hasRoom({ id }: Principal): boolean {
    if (this.#stopping || this.#waits.size >= maxWaits) return false;
    const own = [...this.#waits].filter(({ principal }) => principal.id === id);
    return own.length < maxWaitsEach;
  }

  /**
   * Waits until a held action is reviewed. Resolves with `approved` where the action is to run anew, else with the refusal to
   * answer with. Rejects with the reason of an aborted signal that is a GatewayError, and with KEY_UNKNOWN where the key of
   * the principal was revoked.
   */
  async wait(refused: RefusedRun, review: HeldReview, wanted: WantedWait): Promise<"approved" | RefusedRun> {
    const wait = { principal: wanted.principal, end: new AbortController() };
    const over = AbortSignal.any([wait.end.signal, ...wanted.ends]);
    const approval = await this.#decided(wait, review.approval, wanted.maxMs, over);
    if (over.reason instanceof GatewayError) throw over.reason;
    // A request whose asker is gone, or was answered that nothing ran, must not run.
    const isApproved = approval.state === "approved" || approval.state === "consumed";
    return isApproved && !over.aborted ? "approved" : withState(refused, review, approval);
  }

  /** Answers every waiting request as if its time were over, and lets none wait any more. */
  stop(): void {
    this.#stopping = true;
    for (const { end } of this.#waits) end.abort();
  }

  /** Refuses the waiting requests of principals that are no longer known. */
  endRevoked(known: (principal: Principal) => boolean): void {
    for (const { principal, end } of this.#waits) {
      if (!known(principal)) end.abort(new GatewayError("KEY_UNKNOWN"));
    }
  }

  async #decided(wait: Wait, pending: Approval, maxMs: number, over: AbortSignal): Promise<Approval> {
    const { book, onCount } = this.#options;
    const timer = setTimeout(() => wait.end.abort(), maxMs);
    onCount(this.#waits.add(wait).size);
    try {
      return await book.decided(pending, over);
    } finally {
      this.#waits.delete(wait);
      onCount(this.#waits.size);
      clearTimeout(timer);
    }
  }
}

/** The refusal with the present state of its approval. */
function withState(refused: RefusedRun, review: HeldReview, approval: Approval): RefusedRun {
  if (approval.state === "denied") return { ...refused, review: { kind: "denied", approval, step: review.step } };
  return { ...refused, review: { ...review, approval } };
}
