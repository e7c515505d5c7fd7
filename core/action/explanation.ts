import type { Decision } from "./decision.ts";
import type { ActionEnvelope } from "./envelope.ts";

/**
 * The outcome of an expression or of a part of one. `skipped`: an earlier part had already decided. `budget_exceeded`: the
 * explanation ran out of its work budget. `unavailable`: the action is no longer kept, so it cannot be evaluated.
 */
export type ExpressionOutcome = "true" | "false" | "value" | "error" | "skipped" | "budget_exceeded" | "unavailable";

/** One expression of a rule, or a part of one, and what it came to for one action. */
export interface ExplainedExpression {
  /** As its author wrote it, but for blanks and brackets. At most 256 characters, then `…`, as is `value`. */
  readonly text: string;
  readonly outcome: ExpressionOutcome;
  /** Its value, or the error; `[redacted]` where that is hidden, null where it was not evaluated. */
  readonly value: string | null;
  /** The parts that decided it, in order of evaluation. */
  readonly parts: readonly ExplainedExpression[];
  /** True where parts are left out. */
  readonly more: boolean;
}

/** One condition of a rule: its `when`, its `unless`, or that of an exception. */
export interface ExplainedCondition {
  readonly name: string;
  readonly expression: ExplainedExpression;
}

/** A key of a rule's `match` that does not agree with the action. */
export interface Mismatch {
  readonly key: string;
  readonly expected: readonly string[];
  readonly got: string;
}

/**
 * The outcome of a rule. `held`: it applied. `failed`: it could not be evaluated, which blocks. `match`, `when`, `unless`,
 * `expired`: the reason why it does not apply. `exception`, `ticket`: the reason why it was lifted. `budget_exceeded`: the
 * explanation ran out of its work budget before it.
 */
export type RuleOutcome =
  | "held"
  | "failed"
  | "match"
  | "when"
  | "unless"
  | "expired"
  | "exception"
  | "ticket"
  | "budget_exceeded";

/** One rule, where it stands, and why it did or did not decide about an action. */
export interface ExplainedRule {
  readonly rule: string;
  readonly title: string;
  readonly decision: Decision;
  readonly severity: string;
  readonly mode: "enforce" | "shadow";
  /** A path inside the pack. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly outcome: RuleOutcome;
  /** In a sentence, fit for a terminal. */
  readonly why: string;
  readonly mismatches: readonly Mismatch[];
  readonly conditions: readonly ExplainedCondition[];
}

/** A rule that did not decide, and how far it was from it. */
export interface NearRule {
  /** 0 for one that was lifted; below 1 where a part of its `when` held, above 1 for one of another `match`. */
  readonly distance: number;
  readonly rule: ExplainedRule;
}

/** The explanation of one policy's verdict. */
export interface PolicyExplanation {
  /** The rules that decided, in the order of the pack. */
  readonly rules: readonly ExplainedRule[];
  /** The rules that nearly decided, nearest first. */
  readonly near: readonly NearRule[];
}

/** Explains the rules of a policy. */
export interface RuleExplainer {
  /**
   * Explains the verdict on an action. `rendered` is the same action with hidden values removed: the explanation contains
   * only values that are equal in both, and none where it is null. Bounded by work; never called while serving an action.
   */
  explain(action: ActionEnvelope, rendered: ActionEnvelope | null): PolicyExplanation;
  /** Describes the rules with these ids without an action. */
  describeRules(ids: readonly string[]): readonly ExplainedRule[];
}

/** Nearest rules that did not decide, in one explanation. */
export const maxNear = 3;
