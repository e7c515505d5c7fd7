const minuteMs = 60_000;

/** So much a minute, refilled evenly and never beyond a minute's worth. Times are monotonic milliseconds. */
export class Allowance {
  readonly perMinute: number;
  #left: number;
  #at: number;

  constructor(perMinute: number, nowMs: number) {
    this.perMinute = perMinute;
    this.#left = perMinute;
    this.#at = nowMs;
  }

  /** Below zero where more was taken than was there: that is paid off before anything else. */
  left(nowMs: number): number {
    const refilled = (Math.max(0, nowMs - this.#at) * this.perMinute) / minuteMs;
    this.#left = Math.min(this.perMinute, this.#left + refilled);
    this.#at = Math.max(this.#at, nowMs);
    return this.#left;
  }

  /** A negative `amount` gives back. */
  take(amount: number, nowMs: number): void {
    this.#left = Math.min(this.perMinute, this.left(nowMs) - amount);
  }

  /** How long until `amount` is there, or all there can be; 0: it is. */
  waitMs(amount: number, nowMs: number): number {
    const missing = Math.min(amount, this.perMinute) - this.left(nowMs);
    return missing <= 0 ? 0 : (missing * minuteMs) / this.perMinute;
  }
}
