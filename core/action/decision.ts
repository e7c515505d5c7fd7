import type { Phase } from "./envelope.ts";
import type { Finding, PolicyRef, Redaction, Verdict } from "./policy.ts";

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

/** A verdict with the policy that gave it and the time it took (whole microseconds). */
export interface PolicyVerdict extends Verdict {
  readonly policy: PolicyRef;
  readonly durationUs: number;
}

/** The combined answer of the chain about one action in one phase. */
export interface Evaluation {
  readonly id: string;
  readonly actionId: string;
  readonly phase: Phase;
  readonly decision: Decision;
  /** Every enforced policy's verdict, in the order of the chain. */
  readonly verdicts: readonly PolicyVerdict[];
  /** What policies in shadow mode would have said; never part of the decision. */
  readonly shadow: readonly PolicyVerdict[];
  /** The findings that made the decision what it is; empty when the default did. */
  readonly determining: readonly Finding[];
  /** True where nothing matched and the configured default decided. */
  readonly byDefault: boolean;
  /** How many reviewers must approve before a reviewed action may run: the most any determining finding asks, never 0. */
  readonly approvals: number;
  readonly risk: number;
  /** What enforced policies replace in this action's output: sorted by place, none overlapping, each sure to apply. */
  readonly redactions: readonly Redaction[];
  readonly durationUs: number;
}

/** What a rule in shadow mode, or of a policy in shadow mode, would have made of an action. */
export interface ShadowDecision {
  readonly decision: Exclude<Decision, "allow">;
  readonly rule: string;
  readonly policy: Pick<PolicyRef, "kind" | "name">;
}

/** The most that is told of one evaluation. */
const maxTold = 32;

/** What would have held or blocked the action, were it enforced: each rule once, in the order of the chain. */
export function shadowDecisions({ verdicts, shadow }: Evaluation): readonly ShadowDecision[] {
  const found = new Map<string, ShadowDecision>();
  for (const { policy, findings } of verdicts) {
    for (const { rule, decision, mode } of findings) if (mode === "shadow") take(found, policy, rule, decision);
  }
  for (const { policy, findings } of shadow) {
    for (const { rule, decision } of findings) take(found, policy, rule, decision);
  }
  return [...found.values()];
}

function take(found: Map<string, ShadowDecision>, policy: PolicyRef, rule: string, decision: Decision): void {
  if (decision === "allow" || found.size === maxTold) return;
  const key = JSON.stringify([policy.kind, policy.name, rule, decision]);
  if (!found.has(key)) found.set(key, { decision, rule, policy: { kind: policy.kind, name: policy.name } });
}
