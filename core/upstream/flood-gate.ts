import type { Clock } from "../kernel/port.ts";

const burst = 5_000;
const refillPerMs = 1;
const bytesPerUnit = 4_096;

/**
 * How many unsolicited messages an upstream may send: 5,000 at once and 1,000 a second after that, where each
 * started 4 KiB of a message counts as one more.
 */
export class FloodGate {
  readonly #clock: Clock;
  #units: number = burst;
  #last: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#last = clock();
  }

  /** Takes a message of so many bytes; false when the upstream sends more than it may. */
  admit(bytes: number): boolean {
    const now = this.#clock();
    this.#units = Math.min(burst, this.#units + Math.max(0, now - this.#last) * refillPerMs);
    this.#last = now;
    this.#units -= 1 + Math.floor(bytes / bytesPerUnit);
    return this.#units >= 0;
  }
}
