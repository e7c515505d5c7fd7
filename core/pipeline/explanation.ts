import type { TicketStanding } from "../kernel/capability-ticket.ts";
import type { Decision } from "../kernel/decision.ts";
import type { ActionEnvelope, Phase } from "../kernel/envelope.ts";
import type { ExplainedRule } from "../kernel/explanation.ts";
import type { Finding, Mode, PolicyRef, Verdict } from "../kernel/policy.ts";

/**
 * Where the action comes from that is explained. `request`: whoever asks described it. `memory`: it was decided since the
 * start, and not long ago. `approval`: it waits for a reviewer, or for its use. `evidence`: only its record is left.
 */
export type ExplanationSource = "request" | "memory" | "approval" | "evidence";

/**
 * Whether values are told. `redacted`: of the action as it is without what a policy would redact. `withheld`: none is, for
 * a policy that redacts could not say what is to be hidden. `not_kept`: what it was about is nowhere any more.
 */
export type ExplainedValues = "shown" | "redacted" | "withheld" | "not_kept";

/** Whether a policy is loaded as it was when it answered. */
export type Standing = "same" | "changed" | "gone";

/** Why something was decided about an action, as far as that is known. */
export interface Explanation {
  /** Of the decision. */
  readonly id: string;
  readonly time: string;
  readonly phase: Phase;
  readonly decision: Decision;
  readonly by_default: boolean;
  readonly risk: number;
  /** The rules that made the decision. */
  readonly rules: readonly string[];
  /** In a sentence, fit for a terminal. */
  readonly why: string;
  readonly source: ExplanationSource;
  readonly values: ExplainedValues;
  readonly action: ExplainedAction;
  /** In the order of the chain, those in shadow mode last. The strictest enforced one that does not abstain decides. */
  readonly policies: readonly ExplainedPolicy[];
  /** The nearest rules, of all packs, that did not decide; the nearest first. */
  readonly near: readonly NearMiss[];
  /** What a reader should know beside this. */
  readonly notes: readonly string[];
}

/** What is told of an action itself. */
export interface ExplainedAction
  extends Pick<ActionEnvelope, "id" | "protocol" | "tool" | "target" | "capability" | "task"> {
  readonly principal: string;
  readonly session: string;
  /** How its session stood; null where that is not known. */
  readonly session_state: {
    readonly risk: number;
    readonly actions: number;
    readonly taints: readonly string[];
  } | null;
  readonly ticket: { readonly id: string | null; readonly standing: TicketStanding } | null;
}

export interface ExplainedPolicy {
  readonly policy: PolicyRef;
  readonly mode: Mode;
  readonly verdict: Verdict["decision"];
  /** Whether this verdict is the decision; so may be those of several. */
  readonly decided: boolean;
  /** Why it could not answer. */
  readonly error: string | null;
  readonly standing: Standing;
  readonly findings: readonly ExplainedFinding[];
  /** Its rules that said something, where it has rules that can be read and they are the same as then. */
  readonly rules: readonly ExplainedRule[];
}

/** `message`: null where it is not kept, or may hold what a policy would redact. */
export interface ExplainedFinding extends Pick<Finding, "rule" | "decision" | "severity" | "mode" | "pointer"> {
  readonly message: string | null;
}

export interface NearMiss extends ExplainedRule {
  readonly policy: string;
}
