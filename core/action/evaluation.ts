import type { Decision } from "./decision.ts";
import type { Phase } from "./envelope.ts";
import type { Finding, PolicyRef, Redaction, Verdict } from "./policy.ts";

/** A verdict with the policy that gave it and the time it took (whole microseconds). */
export interface PolicyVerdict extends Verdict {
  readonly policy: PolicyRef;
  readonly durationUs: number;
  /** False where another server decided. */
  readonly replayable?: false;
}

/** The combined decision of the policy chain about one action in one phase. */
export interface Evaluation {
  readonly id: string;
  readonly actionId: string;
  readonly phase: Phase;
  readonly decision: Decision;
  /** Every enforced policy's verdict, in the order of the chain. */
  readonly verdicts: readonly PolicyVerdict[];
  /** The verdicts of policies in shadow mode; never part of the decision. */
  readonly shadow: readonly PolicyVerdict[];
  /** The findings that made the decision what it is; empty when the default did. */
  readonly determining: readonly Finding[];
  /** True where nothing matched and the configured default decided. */
  readonly byDefault: boolean;
  /** Reviewers who must approve before a reviewed action may run: the highest number of a determining finding, at least 1. */
  readonly approvals: number;
  readonly risk: number;
  /** Redactions of this action's output by enforced policies: sorted by place, without overlaps, each applicable. */
  readonly redactions: readonly Redaction[];
  readonly durationUs: number;
}

/** The decision that a rule in shadow mode, or of a policy in shadow mode, would have caused. */
export interface ShadowDecision {
  readonly decision: Exclude<Decision, "allow">;
  readonly rule: string;
  readonly policy: Pick<PolicyRef, "kind" | "name">;
}

/** Shadow decisions returned for one evaluation. */
const maxShadowDecisions = 32;

/** Returns the decisions of shadow mode that would have held or blocked the action: each rule once, in chain order. */
export function shadowDecisions({ verdicts, shadow }: Evaluation): readonly ShadowDecision[] {
  const found = new Map<string, ShadowDecision>();
  for (const { policy, findings } of verdicts) {
    for (const { rule, decision, mode } of findings) if (mode === "shadow") addDecision(found, policy, rule, decision);
  }
  for (const { policy, findings } of shadow) {
    for (const { rule, decision } of findings) addDecision(found, policy, rule, decision);
  }
  return [...found.values()];
}

function addDecision(found: Map<string, ShadowDecision>, policy: PolicyRef, rule: string, decision: Decision): void {
  if (decision === "allow" || found.size === maxShadowDecisions) return;
  const key = JSON.stringify([policy.kind, policy.name, rule, decision]);
  if (!found.has(key)) found.set(key, { decision, rule, policy: { kind: policy.kind, name: policy.name } });
}
