const smallest = 8;
/** How long a whole slice should take at most. */
const wholeMs = 1;
/** How far one slice that took too long makes the next shorter, how far all of them can, and how they grow again. */
const mostAtOnce = 8;
const mostInAll = 256;
const growth = 1.25;

/**
 * How much of a call the thread that serves may try, in fuel: about a millisecond, as it was reckoned, and less where the
 * plugin's code turns out dearer than that. A tenant whose calls use it up in vain has less of it, down to an eighth, and
 * more again with each call that was answered within. Where a call runs does not change its verdict.
 */
export class Slices {
  readonly #reckoned: number;
  readonly #divisors = new Map<string, number>();
  #whole: number;

  constructor(reckoned: number) {
    this.#reckoned = reckoned;
    this.#whole = reckoned;
  }

  of(tenant: string): number {
    return Math.ceil(this.#whole / (this.#divisors.get(tenant) ?? 1));
  }

  answered(tenant: string): void {
    const divisor = this.#divisors.get(tenant);
    if (divisor === undefined) return;
    if (divisor > 2) this.#divisors.set(tenant, divisor / 2);
    else this.#divisors.delete(tenant);
  }

  /** `tookMs` is how long it was tried. */
  usedUp(tenant: string, tookMs: number): void {
    const divisor = this.#divisors.get(tenant) ?? 1;
    this.#divisors.set(tenant, Math.min(smallest, divisor * 2));
    this.#learn((tookMs * divisor) / wholeMs);
  }

  /** Only slices that were used up tell: what answers within cannot make them longer again. */
  #learn(share: number): void {
    if (share > 1) {
      this.#whole = Math.max(this.#reckoned / mostInAll, this.#whole / Math.min(mostAtOnce, share));
    } else if (share < 1 / 2) {
      this.#whole = Math.min(this.#reckoned, this.#whole * growth);
    }
  }
}
