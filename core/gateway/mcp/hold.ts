import type { Approval } from "../../action/approval.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonRpcNotification } from "../../action/json-rpc.ts";
import type { Principal } from "../../action/principal.ts";
import type { ReviewState } from "../../road/authorize.ts";
import type { RunResult } from "../../road/run.ts";
import type { OpenRequest } from "./caller.ts";
import { steeringMeta } from "./method.ts";
import { ReviewPage, type ReviewPageParts } from "./review-page.ts";

const maxHeld = 1_000;
const maxHeldEach = 64;
const progressMs = 2_000;

interface HoldParts extends ReviewPageParts {
  /** The longest time a call waits for its review; 0: not at all. */
  readonly holdMs: number;
  /** Called with the number of waiting calls each time it changes. */
  readonly onCount: (count: number) => void;
}

type Refused = Extract<RunResult<never>, { readonly kind: "refused" }>;
type Held = Extract<ReviewState, { readonly kind: "held" }>;

/** A waiting call. Aborting `end` with an error refuses the call with it; without one it is answered as held. */
interface Wait {
  readonly principal: Principal;
  readonly end: AbortController;
}

/**
 * Lets tool calls wait for their review instead of being answered at once: 1,000 at a time, 64 of a principal. A call beyond
 * that, or while the gateway stops, is answered at once.
 */
export class Hold {
  readonly page: ReviewPage;
  readonly #parts: HoldParts;
  readonly #waits = new Set<Wait>();
  #stopping = false;

  constructor(parts: HoldParts) {
    this.page = new ReviewPage(parts);
    this.#parts = parts;
  }

  /**
   * Waits until a held call is reviewed, as long as it may. Resolves with `approved` where the call is to run anew, else with
   * the refusal to answer it with. Rejects with CANCELLED where the client no longer wants an answer, and with KEY_UNKNOWN
   * where its key was revoked.
   */
  async waitForApproval(open: OpenRequest, refused: Refused, review: Held): Promise<"approved" | Refused> {
    const unwanted = this.page.show(open, review.approval);
    if (!this.#hasRoom(open) || unwanted?.aborted) return refused;
    const wait = { principal: open.caller.principal, end: new AbortController() };
    const over = AbortSignal.any([
      wait.end.signal,
      open.cancellation.signal,
      ...(unwanted === undefined ? [] : [unwanted]),
    ]);
    const approval = await this.#wait(open, wait, review.approval, over);
    if (over.reason instanceof GatewayError) throw over.reason;
    // A call whose client is gone, or was answered that nothing ran, must not run.
    const isApproved = approval.state === "approved" || approval.state === "consumed";
    return isApproved && !over.aborted ? "approved" : withState(refused, review, approval);
  }

  /** Answers every waiting call as if its time were over, and lets none wait any more. */
  stop(): void {
    this.#stopping = true;
    for (const { end } of this.#waits) end.abort();
  }

  /** Refuses the waiting calls of principals that are no longer known. */
  endRevoked(known: (principal: Principal) => boolean): void {
    for (const { principal, end } of this.#waits) {
      if (!known(principal)) end.abort(new GatewayError("KEY_UNKNOWN"));
    }
  }

  #hasRoom({ caller, reply }: OpenRequest): boolean {
    if (this.#parts.holdMs === 0 || this.#stopping || !reply.open || this.#waits.size >= maxHeld) return false;
    const own = [...this.#waits].filter(({ principal }) => principal.id === caller.principal.id);
    return own.length < maxHeldEach;
  }

  async #wait(open: OpenRequest, wait: Wait, pending: Approval, over: AbortSignal): Promise<Approval> {
    const { holdMs, book } = this.#parts;
    const end = (): void => wait.end.abort();
    const timer = setTimeout(end, holdMs);
    const stopListening = open.reply.onClosed(end);
    const stopProgress = reportProgress(open, pending.id, holdMs);
    this.#parts.onCount(this.#waits.add(wait).size);
    try {
      return await book.decided(pending, over);
    } finally {
      this.#waits.delete(wait);
      this.#parts.onCount(this.#waits.size);
      stopProgress();
      stopListening();
      clearTimeout(timer);
    }
  }
}

/** Sends progress notifications while a call waits, where its client asked for them. Returns what ends that. */
function reportProgress(open: OpenRequest, id: string, holdMs: number): () => void {
  const { progressToken } = steeringMeta(open.meta);
  if (progressToken === undefined) return () => undefined;
  const begin = performance.now();
  const report = (): void => {
    // Below 1: the first step that the upstream counts still comes after it.
    const progress = Math.min(performance.now() - begin, holdMs) / (holdMs + progressMs);
    const params = { progressToken, progress, message: `waiting for review of ${id}` };
    const note: JsonRpcNotification = { jsonrpc: "2.0", method: "notifications/progress", params };
    open.reply.send(note);
  };
  report();
  const timer = setInterval(report, progressMs);
  return () => clearInterval(timer);
}

/** The refusal with the present state of its approval. */
function withState(refused: Refused, review: Held, approval: Approval): Refused {
  if (approval.state === "denied") return { ...refused, review: { kind: "denied", approval, step: review.step } };
  return { ...refused, review: { ...review, approval } };
}
