import { GatewayError } from "../action/error.ts";
import { Allowance } from "../action/token-bucket.ts";

export type RateUnit = "requests" | "tokens";

interface RateLimitOptions {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** Principals whose allowance is not full; 50,000 where absent. */
  readonly maxPrincipals?: number;
}

/** The state of one limit of one principal. */
interface RateState {
  readonly limit: number;
  /** Whole, and never below zero. */
  readonly remaining: number;
  /** Seconds, rounded up, until the allowance is full again. */
  readonly resetS: number;
}

type RateStates = Readonly<Record<RateUnit, RateState>>;

interface Allowances {
  readonly requests: Allowance;
  readonly tokens: Allowance;
}

const defaultMaxPrincipals = 50_000;
/** Allowances examined per request when the table is full. */
const maxExamined = 16;

/**
 * Requests and tokens a minute for each principal, in memory: a restart resets them.
 *
 * INVARIANT: an allowance is evicted only once it is full, so that nobody regains one by flooding the table.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  /** The least recently used first. */
  readonly #used = new Map<string, Allowances>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /**
   * Throws RATE_LIMITED, with the time to wait, where a request with so many tokens exceeds the limit now. Changes
   * nothing. A request with more tokens than a minute has is admitted when the allowance is full, and delays later ones.
   */
  check(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    const known = this.#used.get(principal);
    if (known === undefined && this.#isCrowded(now)) throw crowded();
    const { requests, tokens: left } = known ?? this.#full(now);
    checkWait("requests", requests, requests.waitMs(1, now), now);
    checkWait("tokens", left, left.waitMs(tokens, now), now);
  }

  /** Takes a request and so many tokens, even where the allowance has fewer. */
  take(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    const allowances = this.#touch(principal, now);
    allowances.requests.take(1, now);
    allowances.tokens.take(tokens, now);
  }

  /** Takes further tokens for an admitted request, or returns some where `tokens` is negative. */
  correct(principal: string, tokens: number): void {
    const now = this.#options.elapsedMs();
    this.#touch(principal, now).tokens.take(tokens, now);
  }

  states(principal: string): RateStates {
    const now = this.#options.elapsedMs();
    const { requests, tokens } = this.#used.get(principal) ?? this.#full(now);
    return { requests: stateOf(requests, now), tokens: stateOf(tokens, now) };
  }

  /** The number of principals in memory. */
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

  /** True where there is no room for one more principal, after evicting some whose allowance is full. */
  #isCrowded(now: number): boolean {
    const { maxPrincipals = defaultMaxPrincipals } = this.#options;
    if (this.#used.size < maxPrincipals) return false;
    for (const [principal, allowances] of takeFirst(this.#used, maxExamined)) {
      this.#used.delete(principal);
      if (!isFull(allowances, now)) this.#used.set(principal, allowances);
    }
    return this.#used.size >= maxPrincipals;
  }
}

function takeFirst<T>(all: Iterable<T>, count: number): readonly T[] {
  const first: T[] = [];
  for (const each of all) if (first.push(each) === count) break;
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

function checkWait(unit: RateUnit, allowance: Allowance, waitMs: number, now: number): void {
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
 * Renders both limits as structured fields (`RateLimit`, `RateLimit-Policy`: quota `q`, window `w` in seconds, remaining
 * `r`, time to reset `t`), and the tighter of the two in the three headers that many clients read.
 */
export function rateLimitHeaders({ requests, tokens }: RateStates): Readonly<Record<string, string>> {
  const tighter = remainingShare(requests) <= remainingShare(tokens) ? requests : tokens;
  return {
    "ratelimit-policy": `"requests";q=${requests.limit};w=60, "tokens";q=${tokens.limit};w=60`,
    ratelimit: `"requests";r=${requests.remaining};t=${requests.resetS}, "tokens";r=${tokens.remaining};t=${tokens.resetS}`,
    "ratelimit-limit": String(tighter.limit),
    "ratelimit-remaining": String(tighter.remaining),
    "ratelimit-reset": String(tighter.resetS),
  };
}

function remainingShare({ limit, remaining }: RateState): number {
  return remaining / limit;
}
