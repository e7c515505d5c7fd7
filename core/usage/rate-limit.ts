import { GatewayError } from "../action/error.ts";
import { Allowance } from "../action/token-bucket.ts";

export type RateUnit = "requests" | "tokens";

interface RateLimitOptions {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** Principals at once whose allowance is not full again; 50,000 unless told. */
  readonly maxPrincipals?: number;
}

/** Where one principal stands with one limit. */
interface RateState {
  readonly limit: number;
  /** Whole, and never below zero. */
  readonly remaining: number;
  /** Seconds, rounded up, until all of it is there again. */
  readonly resetS: number;
}

type RateStates = Readonly<Record<RateUnit, RateState>>;

interface Allowances {
  readonly requests: Allowance;
  readonly tokens: Allowance;
}

const usualPrincipals = 50_000;
/** In one turn, for one that is full again. */
const maxLookedAt = 16;

/**
 * Requests and tokens a minute, for each principal, in memory: a start begins anew.
 *
 * INVARIANT: an allowance is forgotten only once it is full again, so that nobody regains one by making others come.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  /** Those used or looked at longest ago first. */
  readonly #used = new Map<string, Allowances>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /**
   * Throws RATE_LIMITED, with how long to wait, where a request with so many tokens is too much now; takes nothing.
   * More tokens than a minute has are let in when all of them are there, and keep out what follows for longer.
   */
  check(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    const known = this.#used.get(principal);
    if (known === undefined && this.#isCrowded(now)) throw crowded();
    const { requests, tokens: left } = known ?? this.#full(now);
    refuse("requests", requests, requests.waitMs(1, now), now);
    refuse("tokens", left, left.waitMs(tokens, now), now);
  }

  /** Takes a request and so many tokens, whether they are there or not. */
  take(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    const allowances = this.#touch(principal, now);
    allowances.requests.take(1, now);
    allowances.tokens.take(tokens, now);
  }

  /** Takes further tokens of an admitted request, or gives some back. */
  correct(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    this.#touch(principal, now).tokens.take(tokens, now);
  }

  states(principal: string): RateStates {
    const now = this.#options.elapsedMs();
    const { requests, tokens } = this.#used.get(principal) ?? this.#full(now);
    return { requests: stateOf(requests, now), tokens: stateOf(tokens, now) };
  }

  /** How many principals are remembered. */
  get size(): number {
    return this.#used.size;
  }

  #touch(principal: string, now: number): Allowances {
    const allowances = this.#used.get(principal) ?? this.#full(now);
    this.#used.delete(principal);
    this.#used.set(principal, allowances);
    return allowances;
  }

  #full(now: number): Allowances {
    const { requestsPerMinute, tokensPerMinute } = this.#options;
    return { requests: new Allowance(requestsPerMinute, now), tokens: new Allowance(tokensPerMinute, now) };
  }

  /** Whether there is no room for one more, those forgotten that are full again. */
  #isCrowded(now: number): boolean {
    const most = this.#options.maxPrincipals ?? usualPrincipals;
    if (this.#used.size < most) return false;
    for (const [principal, allowances] of firstOf(this.#used, maxLookedAt)) {
      this.#used.delete(principal);
      if (!isFull(allowances, now)) this.#used.set(principal, allowances);
    }
    return this.#used.size >= most;
  }
}

function firstOf<T>(all: Iterable<T>, most: number): readonly T[] {
  const first: T[] = [];
  for (const each of all) if (first.push(each) === most) break;
  return first;
}

function isFull({ requests, tokens }: Allowances, now: number): boolean {
  return requests.left(now) === requests.perMinute && tokens.left(now) === tokens.perMinute;
}

function stateOf(allowance: Allowance, now: number): RateState {
  const { perMinute } = allowance;
  const remaining = Math.max(0, Math.floor(allowance.left(now)));
  return { limit: perMinute, remaining, resetS: Math.ceil(allowance.waitMs(perMinute, now) / 1_000) };
}

function refuse(unit: RateUnit, allowance: Allowance, waitMs: number, now: number): void {
  if (waitMs === 0) return;
  const { limit, remaining, resetS } = stateOf(allowance, now);
  const retryS = Math.ceil(waitMs / 1_000);
  throw new GatewayError(
    "RATE_LIMITED",
    `expected at most ${limit} ${unit} a minute with one key; try again in ${retryS} s`,
    { data: { reason: unit, retry_after_s: retryS, limit, remaining, reset_s: resetS } },
  );
}

function crowded(): GatewayError {
  const data = { reason: "principals", retry_after_s: 60 };
  return new GatewayError("RATE_LIMITED", "too many keys ask at once; try again in 60 s", { data });
}

/**
 * Both limits as structured fields (`RateLimit`, `RateLimit-Policy`: a policy's quota `q`, window `w` in seconds, rest
 * `r`, time to reset `t`), and the nearer of the two in the three headers that many clients read.
 */
export function rateLimitHeaders({ requests, tokens }: RateStates): Readonly<Record<string, string>> {
  const nearer = share(requests) <= share(tokens) ? requests : tokens;
  return {
    "ratelimit-policy": `"requests";q=${requests.limit};w=60, "tokens";q=${tokens.limit};w=60`,
    ratelimit: `"requests";r=${requests.remaining};t=${requests.resetS}, "tokens";r=${tokens.remaining};t=${tokens.resetS}`,
    "ratelimit-limit": String(nearer.limit),
    "ratelimit-remaining": String(nearer.remaining),
    "ratelimit-reset": String(nearer.resetS),
  };
}

function share({ limit, remaining }: RateState): number {
  return remaining / limit;
}
