import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { RequestRate } from "./request-rate.ts";

export interface AdminRateOptions {
  /** Of one key. */
  readonly requestsPerMinute: number;
  /** Requests without a good key, from one address. */
  readonly strangersPerMinute: number;
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

  constructor({ requestsPerMinute, strangersPerMinute, elapsedMs, onLimited }: AdminRateOptions) {
    this.#keys = new RequestRate({ perMinute: requestsPerMinute, elapsedMs });
    this.#addresses = new RequestRate({ perMinute: strangersPerMinute, elapsedMs });
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
