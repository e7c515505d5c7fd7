const smallest = 8;
/** A slice that took longer than this was dearer than reckoned. */
const longestMs = 1;

/**
 * How much of a call the thread that serves may try, in fuel: about a millisecond. A tenant whose calls use it up in vain
 * has less of it, down to an eighth, and more again with each call that was answered within. Where a call runs does not
 * change its verdict.
 */
export class Slices {
  readonly #whole: number;
  readonly #divisors = new Map<string, number>();

  constructor(whole: number) {
    this.#whole = whole;
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

  usedUp(tenant: string, tookMs: number): void {
    const divisor = this.#divisors.get(tenant) ?? 1;
    this.#divisors.set(tenant, tookMs > longestMs ? smallest : Math.min(smallest, divisor * 2));
  }
}
