const minuteMs = 60_000;

/** A token bucket: refilled evenly, never beyond its capacity. Times are monotonic milliseconds. */
export class Allowance {
  readonly perMinute: number;
  readonly #capacity: number;
  #left: number;
  #at: number;

  /** `capacity`: what may be taken at once; a minute's worth where absent. It begins full. */
  constructor(perMinute: number, nowMs: number, capacity: number = perMinute) {
    this.perMinute = perMinute;
    this.#capacity = capacity;
    this.#left = capacity;
    this.#at = nowMs;
  }

  /** Returns the tokens left; below zero where more were taken than there were. */
  left(nowMs: number): number {
    const refilled = (Math.max(0, nowMs - this.#at) * this.perMinute) / minuteMs;
    this.#left = Math.min(this.#capacity, this.#left + refilled);
    this.#at = Math.max(this.#at, nowMs);
    return this.#left;
  }

  /** Takes tokens; a negative `amount` returns them. */
  take(amount: number, nowMs: number): void {
    this.#left = Math.min(this.#capacity, this.left(nowMs) - amount);
  }

  /** Returns the time until `amount`, or the whole capacity if that is less, is available; 0: now. */
  waitMs(amount: number, nowMs: number): number {
    const missing = Math.min(amount, this.#capacity) - this.left(nowMs);
    return missing <= 0 ? 0 : (missing * minuteMs) / this.perMinute;
  }
}
