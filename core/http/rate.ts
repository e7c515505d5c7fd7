import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import { RecentMap } from "../action/recent-map.ts";
import { Allowance } from "../action/token-bucket.ts";
import { ipv6Bytes } from "../fact/ip-text.ts";

interface AdminRateOptions {
  /** Per key. */
  readonly requestsPerMinute: number;
  /** Per address, of requests without a valid key. */
  readonly unauthenticatedPerMinute: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly onLimited: (by: "key" | "address") => void;
}

/**
 * Limits requests to the admin port. Unauthenticated requests from an address never exhaust the limit of a valid key: on
 * loopback an agent shares the address of the operators who must be able to stop it.
 */
export class AdminRate {
  readonly #keys: RequestRate;
  readonly #failures: FailureRate;
  readonly #onLimited: AdminRateOptions["onLimited"];

  constructor({ requestsPerMinute, unauthenticatedPerMinute, elapsedMs, onLimited }: AdminRateOptions) {
    this.#keys = new RequestRate({ perMinute: requestsPerMinute, elapsedMs });
    this.#failures = new FailureRate({
      perMinute: unauthenticatedPerMinute,
      elapsedMs,
      onLimited: () => onLimited("address"),
    });
    this.#onLimited = onLimited;
  }

  /** Counts a request with a valid key. Throws RATE_LIMITED, with the time to wait, beyond the limit. */
  count({ id }: Principal): void {
    const waitMs = this.#keys.take(id);
    if (waitMs === 0) return;
    this.#onLimited("key");
    throw limitError("key", "requests a minute with one key", this.#keys.perMinute, waitMs);
  }

  /** Counts a request without a valid key. Returns the error to respond with: `error`, or RATE_LIMITED beyond the limit. */
  refuse(address: string, error: GatewayError): GatewayError {
    return this.#failures.refuse(address, error);
  }
}

interface FailureRateOptions {
  /** Per address. */
  readonly perMinute: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly onLimited: () => void;
}

const badCredentials: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "KEY_UNKNOWN",
  "TOKEN_INVALID",
  "LINK_INVALID",
  "SIGN_IN_REFUSED",
]);

/**
 * Limits failed attempts to authenticate, by address. It is asked once an attempt has failed, so that a valid key passes
 * from whatever address: many clients may share one.
 */
export class FailureRate {
  readonly #addresses: RequestRate;
  readonly #onLimited: () => void;

  constructor({ perMinute, elapsedMs, onLimited }: FailureRateOptions) {
    this.#addresses = new RequestRate({ perMinute, elapsedMs });
    this.#onLimited = onLimited;
  }

  /** Counts a failed attempt. Returns the error to respond with: `error`, or RATE_LIMITED beyond the limit. */
  refuse(address: string, error: GatewayError): GatewayError {
    const waitMs = this.#addresses.take(addressGroup(address));
    if (waitMs === 0) return error;
    this.#onLimited();
    return limitError("address", "unauthenticated requests a minute", this.#addresses.perMinute, waitMs);
  }

  /** Does the same where the error is about the credential that a request presented; returns others as they are. */
  refuseBadKey(address: string, error: GatewayError): GatewayError {
    return badCredentials.has(error.code) ? this.refuse(address, error) : error;
  }
}

function limitError(reason: "key" | "address", what: string, limit: number, waitMs: number): GatewayError {
  const seconds = Math.ceil(waitMs / 1_000);
  const detail = `expected at most ${limit} ${what}; try again in ${seconds} s`;
  return new GatewayError("RATE_LIMITED", detail, { data: { reason, retry_after_s: seconds, limit } });
}

/**
 * Returns the name under which an address is counted: an IPv6 address counts with the other 2^64 of its /64, which one host
 * can use, and an IPv4-mapped one as IPv4.
 */
export function addressGroup(address: string): string {
  const bytes = ipv6Bytes(address.split("%", 1)[0] as string);
  if (bytes === undefined) return address;
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  if (isMapped) return bytes.slice(12).join(".");
  return `${Buffer.from(bytes.slice(0, 8)).toString("hex")}/64`;
}

interface RequestRateOptions {
  readonly perMinute: number;
  /** Requesters remembered at once; default 10,000. */
  readonly maxKnown?: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const usualMaxKnown = 10_000;
/** Allowances checked in one call for one that is full again. */
const maxChecked = 16;

/**
 * Requests a minute of each requester, in memory only. The number of remembered requesters is bounded; those beyond it
 * share one allowance.
 *
 * INVARIANT: an allowance is forgotten only once it is full again, so that nobody regains one by causing others to come.
 */
export class RequestRate {
  readonly perMinute: number;
  readonly #maxKnown: number;
  readonly #elapsedMs: () => number;
  readonly #known = new RecentMap<Allowance>();
  readonly #others: Allowance;

  constructor({ perMinute, maxKnown = usualMaxKnown, elapsedMs }: RequestRateOptions) {
    this.perMinute = perMinute;
    this.#maxKnown = maxKnown;
    this.#elapsedMs = elapsedMs;
    this.#others = new Allowance(perMinute, elapsedMs());
  }

  /** The number of remembered requesters. */
  get size(): number {
    return this.#known.size;
  }

  /** Takes one request and returns 0; where none is left, takes nothing and returns the milliseconds until one is. */
  take(requester: string): number {
    const now = this.#elapsedMs();
    const allowance = this.#allowanceOf(requester, now);
    const waitMs = allowance.waitMs(1, now);
    if (waitMs === 0) allowance.take(1, now);
    return waitMs;
  }

  #allowanceOf(requester: string, now: number): Allowance {
    const known = this.#known.get(requester);
    if (known !== undefined) return known;
    if (!this.#hasRoom(now)) return this.#others;
    const allowance = new Allowance(this.perMinute, now);
    this.#known.set(requester, allowance);
    return allowance;
  }

  /** Makes room for one more by forgetting full allowances; false where there is none. */
  #hasRoom(now: number): boolean {
    if (this.#known.size < this.#maxKnown) return true;
    let checked = 0;
    for (const [requester, allowance] of this.#known.entries()) {
      if (allowance.left(now) === this.perMinute) this.#known.delete(requester);
      if (++checked === maxChecked) break;
    }
    return this.#known.size < this.#maxKnown;
  }
}

/** Most requests end within seconds: then there is room again. */
const retrySoon = { data: { retry_after_s: 1 } } as const;

/**
 * Limits the requests served at once, fairly between their holders. A request is admitted while more places are free than
 * its holder has: one holder alone gets at most half of them, and others always find room.
 */
export class ConcurrencyLimit {
  readonly #maxAtOnce: number;
  /** By holder; only those that hold any. */
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxAtOnce: number) {
    this.#maxAtOnce = maxAtOnce;
  }

  /**
   * Calls `serve` within the limit. Rejects without calling it: with GATEWAY_BUSY where no place is free, with RATE_LIMITED
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
    const free = this.#maxAtOnce - this.#total;
    if (free === 0)
      throw new GatewayError("GATEWAY_BUSY", `expected at most ${this.#maxAtOnce} requests at once`, retrySoon);
    const held = this.#held.get(holder) ?? 0;
    if (held >= free) {
      throw new GatewayError("RATE_LIMITED", `expected fewer requests at once than the ${held} of this key`, retrySoon);
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
