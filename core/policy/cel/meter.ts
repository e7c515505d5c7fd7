/**
 * Work units that one evaluation of a pack may spend over all its rules. A unit is one node of an expression evaluated
 * in a loop, 64 characters of text read, or one step of a regular expression's machine: at most about 0.1 µs.
 */
export const evaluationUnits = 500_000;

/** Bounds the work of expressions over hostile arguments. Deterministic: counts work, not time. */
export class Meter {
  /** Units left; negative once the evaluation has spent more than it may. */
  left = 0;

  /**
   * Charges for work before it is done: for `units`, and for reading `characters`. Throws RangeError once the budget is
   * spent, which ends the whole evaluation: nothing absorbs it, and `left` stays negative.
   */
  charge(units: number, characters = 0): void {
    this.left -= units + (characters >>> 6);
    if (this.left < 0) throw new RangeError(`spent more than ${evaluationUnits} work units`);
  }
}
