const minuteMs = 60_000;

/** A token bucket: refilled evenly, never beyond a minute's worth. Times are monotonic milliseconds. */
export class Allowance {
  readonly perMinute: number;
  #left: number;
  #at: number;

  constructor(perMinute: number, nowMs: number) {
    this.perMinute = perMinute;
    this.#left = perMinute;
    this.#at = nowMs;
  }

  /** Returns the tokens left; below zero where more were taken than there were. */
  left(nowMs: number): number {
    const refilled = (Math.max(0, nowMs - this.#at) * this.perMinute) / minuteMs;
    this.#left = Math.min(this.perMinute, this.#left + refilled);
    this.#at = Math.max(this.#at, nowMs);
    return this.#left;
  }

  /** Takes tokens; a negative `amount` returns them. */
  take(amount: number, nowMs: number): void {
    this.#left = Math.min(this.perMinute, this.left(nowMs) - amount);
  }

  /** Returns the time until `amount`, or a full minute's worth if that is less, is available; 0: now. */
  waitMs(amount: number, nowMs: number): number {
    const missing = Math.min(amount, this.perMinute) - this.left(nowMs);
    return missing <= 0 ? 0 : (missing * minuteMs) / this.perMinute;
  }
}
