import type { JsonRpcNotification } from "../../action/json-rpc.ts";
import type { Principal } from "../../action/principal.ts";
import type { HeldReview, RefusedRun, ReviewWaits } from "../review-wait.ts";
import type { OpenRequest } from "./caller.ts";
import { steeringMeta } from "./method.ts";
import { ReviewPage, type ReviewPageParts } from "./review-page.ts";

const progressMs = 2_000;

interface HoldParts extends ReviewPageParts {
  /** The longest time a call waits for its review; 0: not at all. */
  readonly holdMs: number;
  readonly waits: ReviewWaits;
}

/** Lets tool calls wait for their review instead of being answered at once, as far as `ReviewWaits` has room for them. */
export class Hold {
  readonly page: ReviewPage;
  readonly #parts: HoldParts;

  constructor(parts: HoldParts) {
    this.page = new ReviewPage(parts);
    this.#parts = parts;
  }

  /**
   * Waits until a held call is reviewed, as long as it may. Resolves with `approved` where the call is to run anew, else with
   * the refusal to answer it with. Rejects with CANCELLED where the client no longer wants an answer, and with KEY_UNKNOWN
   * where its key was revoked.
   */
  async waitForApproval(open: OpenRequest, refused: RefusedRun, review: HeldReview): Promise<"approved" | RefusedRun> {
    const { holdMs, waits } = this.#parts;
    const { reply, caller, cancellation } = open;
    const unwanted = this.page.show(open, review.approval);
    if (holdMs === 0 || !reply.open || unwanted?.aborted || !waits.hasRoom(caller.principal)) return refused;
    const closed = new AbortController();
    const stopListening = reply.onClosed(() => closed.abort());
    const stopProgress = reportProgress(open, review.approval.id, holdMs);
    const ends = [closed.signal, cancellation.signal, ...(unwanted === undefined ? [] : [unwanted])];
    try {
      return await waits.wait(refused, review, { principal: caller.principal, maxMs: holdMs, ends });
    } finally {
      stopProgress();
      stopListening();
    }
  }

  /** Answers every waiting call as if its time were over, and lets none wait any more. */
  stop(): void {
    this.#parts.waits.stop();
  }

  /** Refuses the waiting calls of principals that are no longer known. */
  endRevoked(known: (principal: Principal) => boolean): void {
    this.#parts.waits.endRevoked(known);
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
