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
  /** What it gave, or why it gave nothing; `[redacted]` where that is hidden, null where it was not asked. */
  readonly value: string | null;
  /** What decided it, in the order in which that was asked. */
  readonly parts: readonly ExplainedExpression[];
  /** Whether there are parts that are not told. */
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
 * What a rule came to. `held`: it decided as it says. `failed`: it could not be evaluated, which blocks. `match`, `when`,
 * `unless`, `expired`: that is why it is not about the action. `exception`, `ticket`: that lifted it. `budget_exceeded`: the work
 * that one explanation may take was spent before it was its turn.
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

/** Why one policy says of an action what it says. */
export interface PolicyExplanation {
  /** The rules that said something, in the order of the pack. */
  readonly rules: readonly ExplainedRule[];
  /** The nearest of those that did not, the nearest first. */
  readonly near: readonly NearRule[];
}

/** The rules of a policy, where those can be read. */
export interface RuleExplainer {
  /**
   * Why the rules say of the action what they say. `shown`: the same action without what is not to be seen; a value is told
   * where it is the same of both. Null: none is. Bounded by work; never called on the road.
   */
  explain(action: ActionEnvelope, shown: ActionEnvelope | null): PolicyExplanation;
  /** The rules of these ids as far as they can be told without the action. */
  describeRules(ids: readonly string[]): readonly ExplainedRule[];
}

/** The nearest rules that did not decide, of which so many are told. */
export const maxNear = 3;
