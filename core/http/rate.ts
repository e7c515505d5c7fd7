import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import { RecentMap } from "../action/recent-map.ts";
import { Allowance } from "../action/token-bucket.ts";

interface AdminRateOptions {
  /** Of one key. */
  readonly requestsPerMinute: number;
  /** Requests without a good key, from one address. */
  readonly unauthenticatedPerMinute: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly onLimited: (by: "key" | "address") => void;
}

/**
 * How often the admin port may be asked. What strangers do from an address never keeps a good key from it: on loopback
 * an agent shares the address of those who have to be able to stop it.
 */
export class AdminRate {
  readonly #keys: RequestRate;
  readonly #addresses: RequestRate;
  readonly #onLimited: AdminRateOptions["onLimited"];

  constructor({ requestsPerMinute, unauthenticatedPerMinute, elapsedMs, onLimited }: AdminRateOptions) {
    this.#keys = new RequestRate({ perMinute: requestsPerMinute, elapsedMs });
    this.#addresses = new RequestRate({ perMinute: unauthenticatedPerMinute, elapsedMs });
    this.#onLimited = onLimited;
  }

  /** Counts a request of a good key. Throws RATE_LIMITED, with how long to wait, where it is one too many. */
  count({ id }: Principal): void {
    const waitMs = this.#keys.take(id);
    if (waitMs > 0) throw this.#limited("key", this.#keys, waitMs);
  }

  /** Counts a request without a good key; the error to answer it with: `error`, or RATE_LIMITED where it is one too many. */
  refuse(address: string, error: GatewayError): GatewayError {
    const waitMs = this.#addresses.take(address);
    return waitMs === 0 ? error : this.#limited("address", this.#addresses, waitMs);
  }

  #limited(by: "key" | "address", { perMinute }: RequestRate, waitMs: number): GatewayError {
    this.#onLimited(by);
    const seconds = Math.ceil(waitMs / 1_000);
    const what = by === "key" ? "requests a minute with one key" : "requests a minute without a good key";
    const detail = `expected at most ${perMinute} ${what}; try again in ${seconds} s`;
    return new GatewayError("RATE_LIMITED", detail, { data: { reason: by, retry_after_s: seconds, limit: perMinute } });
  }
}

interface RequestRateOptions {
  readonly perMinute: number;
  /** Those remembered at once; 10,000 unless told. */
  readonly most?: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const usualMost = 10_000;
/** In one turn, for one that is full again. */
const maxLookedAt = 16;

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
      if (++looked === maxLookedAt) break;
    }
    return this.#known.size < this.#most;
  }
}

/** Most requests end within seconds, so that there is room again. */
const wait = { data: { retry_after_s: 1 } } as const;

/**
 * What is served at once, by who asked for it. A holder is let in while more places are free than it holds: alone it has
 * at most half of them, and however many one asks for, others find room.
 */
export class ConcurrencyLimit {
  readonly #most: number;
  /** Only of those that hold any. */
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Serves within the limit. Rejects, and serves nothing, with GATEWAY_BUSY where no place is free, and with RATE_LIMITED
   * where the holder has its share.
   */
  async run<Result>(holder: string, serve: () => Promise<Result>): Promise<Result> {
    this.#enter(holder);
    try {
      return await serve();
    } finally {
      this.#leave(holder);
    }
  }

  #enter(holder: string): void {
    const free = this.#most - this.#total;
    if (free === 0) throw new GatewayError("GATEWAY_BUSY", `expected at most ${this.#most} requests at once`, wait);
    const held = this.#held.get(holder) ?? 0;
    if (held >= free) {
      throw new GatewayError("RATE_LIMITED", `expected fewer requests at once than the ${held} of this key`, wait);
    }
    this.#held.set(holder, held + 1);
    this.#total++;
  }

  #leave(holder: string): void {
    const held = (this.#held.get(holder) ?? 0) - 1;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    this.#total--;
  }
}
