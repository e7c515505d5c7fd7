/**
 * Work units one evaluation of a pack may spend, over all its rules. A unit is one node of an expression evaluated
 * in a loop, 64 characters of text touched, or one step of a regular expression's machine: about 0.1 µs.
 */
const evaluationUnits = 500_000;

/** What keeps an expression over hostile arguments finite. Deterministic: it counts work, not time. */
export class Meter {
  #left = 0;
  #overrun = false;

  /** Fills the meter for the next evaluation. */
  refill(): void {
    this.#left = evaluationUnits;
    this.#overrun = false;
  }

  /**
   * Pays for work before it is done. Throws RangeError when the evaluation has spent what it may; from then on
   * `overrun` stays true, because CEL's `||` and `&&` can swallow the error itself.
   */
  charge(units: number): void {
    this.#left -= units;
    if (this.#left >= 0) return;
    this.#overrun = true;
    throw new RangeError(`spent more than ${evaluationUnits} work units`);
  }

  /** Pays for reading `length` characters. */
  chargeText(length: number): void {
    this.charge(1 + (length >>> 6));
  }

  get left(): number {
    return this.#left;
  }

  get overrun(): boolean {
    return this.#overrun;
  }
}
