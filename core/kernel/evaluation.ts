import type { Decision } from "./decision.ts";
import type { Phase } from "./envelope.ts";
import type { Finding, PolicyRef, Redaction, Verdict } from "./policy.ts";

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
