import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from "jose";
import { tokenError } from "./token-error.ts";

interface SigningKeysOptions {
  /** Bounded in time and size by itself. */
  readonly fetch: () => Promise<JSONWebKeySet>;
  /** Time that fetched keys serve, from the beginning of their fetch. */
  readonly cacheMs: number;
  /** Least time from the beginning of one fetch to that of the next. */
  readonly refetchMs: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly onFetched: (keyCount: number) => void;
  readonly onFault: (cause: unknown) => void;
}

interface CachedKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  /** From then on they are fetched again, while these still serve. */
  readonly renewMs: number;
  /** From then on they serve no more. */
  readonly endMs: number;
}

/**
 * The public keys with which one issuer signs. They are fetched when a token first needs them, again from half of their
 * time on, and for a key id that they do not have; one fetch at a time, and never sooner than `refetchMs` after the last.
 *
 * INVARIANT: keys whose time is over serve nobody, whether or not the issuer can be reached.
 */
export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #cached: CachedKeys | undefined;
  #fetching: Promise<CachedKeys> | undefined;
  #nextFetchMs = Number.NEGATIVE_INFINITY;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /**
   * Returns the key that the header of a token names. Rejects with the errors of jose where there is none, and with
   * TOKEN_INVALID where no keys can be had.
   */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const current = await this.#current();
    try {
      return await current.find(header, token);
    } catch (cause) {
      if (!(cause instanceof errors.JWKSNoMatchingKey) || !this.#mayFetch()) throw cause;
      const { find } = await this.#fetch();
      return find(header, token);
    }
  }

  async #current(): Promise<CachedKeys> {
    const now = this.#options.elapsedMs();
    const cached = this.#cached;
    if (cached === undefined || now >= cached.endMs) return this.#fetch();
    // Nobody waits for this one, and `onFault` reports its failure.
    if (now >= cached.renewMs && this.#mayFetch()) this.#fetch().catch(() => undefined);
    return cached;
  }

  #mayFetch(): boolean {
    return this.#fetching !== undefined || this.#options.elapsedMs() >= this.#nextFetchMs;
  }

  async #fetch(): Promise<CachedKeys> {
    if (!this.#mayFetch()) throw this.#unavailable();
    this.#fetching ??= this.#load().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #load(): Promise<CachedKeys> {
    const { fetch, cacheMs, refetchMs, elapsedMs, onFetched, onFault } = this.#options;
    const now = elapsedMs();
    this.#nextFetchMs = now + refetchMs;
    try {
      const keys = await fetch();
      this.#cached = { find: createLocalJWKSet(keys), renewMs: now + cacheMs / 2, endMs: now + cacheMs };
      onFetched(keys.keys.length);
      return this.#cached;
    } catch (cause) {
      onFault(cause);
      throw this.#unavailable();
    }
  }

  #unavailable(): Error {
    const seconds = Math.max(1, Math.ceil((this.#nextFetchMs - this.#options.elapsedMs()) / 1_000));
    return tokenError("keys_unavailable", { retry_after_s: seconds });
  }
}
