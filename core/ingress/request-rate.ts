import { Allowance } from "../kernel/allowance.ts";
import { RecentMap } from "../kernel/recent-map.ts";

export interface RequestRateOptions {
  readonly perMinute: number;
  /** Those remembered at once; 10,000 unless told. */
  readonly most?: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const usualMost = 10_000;
/** In one turn, for one that is full again. */
const mostLookedAt = 16;

/**
 * Requests a minute of each who asks, in memory: a start begins anew. However many ask, no more is remembered than there
 * is room for; those for whom there is none share one allowance.
 *
 * INVARIANT: an allowance is forgotten only once it is full again, so that nobody regains one by making others come.
 */
export class RequestRate {
  readonly perMinute: number;
  readonly #most: number;
  readonly #elapsedMs: () => number;
  readonly #known = new RecentMap<Allowance>();
  readonly #others: Allowance;

  constructor({ perMinute, most = usualMost, elapsedMs }: RequestRateOptions) {
    this.perMinute = perMinute;
    this.#most = most;
    this.#elapsedMs = elapsedMs;
    this.#others = new Allowance(perMinute, elapsedMs());
  }

  /** How many are remembered. */
  get size(): number {
    return this.#known.size;
  }

  /** Takes one request and returns 0; where there is none left, takes nothing and returns the milliseconds until there is. */
  take(who: string): number {
    const now = this.#elapsedMs();
    const allowance = this.#allowanceOf(who, now);
    const waitMs = allowance.waitMs(1, now);
    if (waitMs === 0) allowance.take(1, now);
    return waitMs;
  }

  #allowanceOf(who: string, now: number): Allowance {
    const known = this.#known.get(who);
    if (known !== undefined) return known;
    if (!this.#hasRoom(now)) return this.#others;
    const allowance = new Allowance(this.perMinute, now);
    this.#known.set(who, allowance);
    return allowance;
  }

  /** Whether one more can be remembered, those forgotten that are full again. */
  #hasRoom(now: number): boolean {
    if (this.#known.size < this.#most) return true;
    let looked = 0;
    for (const [who, allowance] of this.#known.entries()) {
      if (allowance.left(now) === this.perMinute) this.#known.delete(who);
      if (++looked === mostLookedAt) break;
    }
    return this.#known.size < this.#most;
  }
}
