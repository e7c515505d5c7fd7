/** The three answers to an attempted action, weakest first. */
export const decisions = ["allow", "review", "block"] as const;
export type Decision = (typeof decisions)[number];

const rank: Readonly<Record<Decision, number>> = { allow: 0, review: 1, block: 2 };

/** The stricter of two decisions: `allow < review < block`. Associative, commutative, idempotent. */
export function strictest(a: Decision, b: Decision): Decision {
  return rank[a] >= rank[b] ? a : b;
}

export function isDecision(value: unknown): value is Decision {
  return typeof value === "string" && Object.hasOwn(rank, value);
}
