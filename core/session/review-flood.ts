import { forgetOldest } from "../kernel/forget.ts";
import type { KillSwitch } from "./kill-switch.ts";

export interface ReviewFloodOptions {
  readonly killSwitch: Pick<KillSwitch, "isKilled" | "kill">;
  /** New reviews that a session may ask for within the window; the next one stops it. 0: any number. */
  readonly reviews: number;
  readonly windowMs: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const mostSessions = 10_000;

/**
 * Stops sessions that ask for too many reviews: whoever tires the reviewers gets one of them to say yes.
 * Counts in memory, of the sessions that asked last; a start begins anew.
 */
export class ReviewFlood {
  readonly #options: ReviewFloodOptions;
  /** By session, when it asked for each review that still counts. */
  readonly #asked = new Map<string, readonly number[]>();

  constructor(options: ReviewFloodOptions) {
    this.#options = options;
  }

  /**
   * Counts a new review, before anything is recorded of it. Where it is one too many, the session is stopped when this
   * returns, and the action that asked is to be refused. Throws where the session cannot be stopped.
   */
  count(tenant: string, session: string): void {
    const { killSwitch, reviews, windowMs, elapsedMs } = this.#options;
    if (reviews === 0) return;
    const now = elapsedMs();
    const key = JSON.stringify([tenant, session]);
    const asked = [...(this.#asked.get(key) ?? []).filter((at) => now - at < windowMs), now];
    this.#asked.delete(key);
    if (asked.length <= reviews) this.#asked.set(key, asked);
    // Several may be one too many at once.
    else if (!killSwitch.isKilled(tenant, { scope: "session", subject: session })) this.#stop(tenant, session);
    forgetOldest(this.#asked, mostSessions);
  }

  #stop(tenant: string, session: string): void {
    // Where it cannot be recorded now, the switch tries again.
    const order = { scope: "session", subject: session, reason: "review_flood", by: null, note: null } as const;
    void this.#options.killSwitch.kill(tenant, order);
  }
}
