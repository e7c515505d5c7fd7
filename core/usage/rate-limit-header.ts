import type { RateState, RateStates } from "./rate-limit.ts";

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
