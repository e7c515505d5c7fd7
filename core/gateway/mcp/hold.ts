import type { Approval } from "../../action/approval.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonRpcNotification } from "../../action/json-rpc.ts";
import type { Principal } from "../../action/principal.ts";
import type { Waiting } from "../../road/authorize.ts";
import type { Passage } from "../../road/run.ts";
import type { OpenRequest } from "./caller.ts";
import { steeringMeta } from "./request-meta.ts";
import { ReviewPage, type ReviewPageParts } from "./review-page.ts";

const maxHeld = 1_000;
const maxHeldEach = 64;
const progressMs = 2_000;

interface HoldParts extends ReviewPageParts {
  /** How long a call waits for its review; 0: not at all. */
  readonly holdMs: number;
  /** Hears how many calls wait, each time that it changes. */
  readonly onCount: (count: number) => void;
}

type Refused = Extract<Passage<never>, { readonly kind: "refused" }>;
type Pending = Extract<Waiting, { readonly kind: "held" }>;

/** A call that waits, and what ends its wait: with an error where it is not to be answered as any held call is. */
interface Wait {
  readonly principal: Principal;
  readonly end: AbortController;
}

/**
 * Where tool calls wait for their review instead of being answered at once: 1,000 at a time, 64 of a principal. A call
 * beyond that, or while the gateway stops, is answered at once.
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
   * Takes a tool call down its `road`, and where it is approved in time down the whole of it once more: nothing of what
   * was known before the wait is believed after it. A call that is held again does not wait again. Rejects as the road
   * does, with CANCELLED where the client wants no answer any more, and with KEY_UNKNOWN where its key is gone.
   */
  async travel<Reply>(open: OpenRequest, road: () => Promise<Passage<Reply>>): Promise<Passage<Reply>> {
    const first = await road();
    if (first.kind !== "refused" || first.review?.kind !== "held") return first;
    const unwanted = this.page.show(open, first.review.approval);
    if (!this.#hasRoom(open) || unwanted?.aborted) return first;
    const wait = { principal: open.caller.principal, end: new AbortController() };
    const over = AbortSignal.any([wait.end.signal, open.signal, ...(unwanted === undefined ? [] : [unwanted])]);
    const approval = await this.#wait(open, wait, first.review.approval, over);
    if (over.reason instanceof GatewayError) throw over.reason;
    // Whoever is not there to read the answer, or was told that nothing ran, must not find that it ran.
    const runs = approval.state === "approved" || approval.state === "consumed";
    return runs && !over.aborted ? road() : tell(first, first.review, approval);
  }

  /** Answers every call that waits, as if its time were over, and lets none wait any more. */
  stop(): void {
    this.#stopping = true;
    for (const { end } of this.#waits) end.abort();
  }

  /** Refuses the calls of everyone who is not `known` any more. */
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
    const stopTelling = tellProgress(open, pending.id, holdMs);
    this.#parts.onCount(this.#waits.add(wait).size);
    try {
      return await book.decided(pending, over);
    } finally {
      this.#waits.delete(wait);
      this.#parts.onCount(this.#waits.size);
      stopTelling();
      stopListening();
      clearTimeout(timer);
    }
  }
}

/** Tells the caller that its call waits, where it asked for progress and reads a stream. */
function tellProgress(open: OpenRequest, id: string, holdMs: number): () => void {
  const { progressToken } = steeringMeta(open.request);
  if (progressToken === undefined) return () => undefined;
  const begin = performance.now();
  const tell = (): void => {
    // Below 1: the first step that the upstream counts still comes after it.
    const progress = Math.min(performance.now() - begin, holdMs) / (holdMs + progressMs);
    const params = { progressToken, progress, message: `waiting for review of ${id}` };
    const note: JsonRpcNotification = { jsonrpc: "2.0", method: "notifications/progress", params };
    open.reply.send(note);
  };
  tell();
  const timer = setInterval(tell, progressMs);
  return () => clearInterval(timer);
}

/** The refusal as it is to be told now. */
function tell(refused: Refused, review: Pending, approval: Approval): Refused {
  if (approval.state === "denied") return { ...refused, review: { kind: "denied", approval, step: review.step } };
  return { ...refused, review: { ...review, approval } };
}
