import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";

const firstDelayMs = 200;
const maxDelayMs = 10_000;
/** The longest pause that a caller waits out instead of failing. */
const maxWaitMs = 1_000;
/** A connection that lasted this long resets the count of failures. */
const stableMs = 10_000;

/** Delays between attempts after failures: doubling, with jitter, 10 s at most. */
export class Backoff {
  readonly #clock: Clock;
  readonly #random: Random;
  #failures = 0;
  #notBefore = 0;
  #openedAt: number | undefined;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the next attempt is allowed; 0 when it is. */
  get remainingMs(): number {
    return Math.max(0, this.#notBefore - this.#clock());
  }

  /** Resolves when an attempt is allowed. Rejects with UPSTREAM_UNAVAILABLE where that takes more than a second. */
  async wait(): Promise<void> {
    const waitMs = this.remainingMs;
    if (waitMs > maxWaitMs)
      throw new GatewayError("UPSTREAM_UNAVAILABLE", `the last attempt failed; the next one is in ${waitMs} ms`);
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }

  /** Records a successful attempt. */
  opened(): void {
    this.#openedAt = this.#clock();
  }

  /** Records a failed attempt or a lost connection. Returns the delay until the next one, in milliseconds. */
  failed(): number {
    const now = this.#clock();
    const wasStable = this.#openedAt !== undefined && now - this.#openedAt >= stableMs;
    this.#openedAt = undefined;
    this.#failures = wasStable ? 1 : this.#failures + 1;
    const ceiling = Math.min(maxDelayMs, firstDelayMs * 2 ** (this.#failures - 1));
    const jitter = (this.#random(1)[0] as number) / 256;
    const delayMs = Math.round((ceiling / 2) * (1 + jitter));
    this.#notBefore = now + delayMs;
    return delayMs;
  }
}
