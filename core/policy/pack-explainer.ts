import { isCovered } from "../action/capability-ticket.ts";
import { strictest } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import {
  type ExplainedCondition,
  type ExplainedExpression,
  type ExplainedRule,
  type Mismatch,
  maxNear,
  type NearRule,
  type PolicyExplanation,
  type RuleExplainer,
  type RuleOutcome,
} from "../action/explanation.ts";
import { showText } from "../action/visible-text.ts";
import type { CelEngine, Expression } from "./cel/engine.ts";
import { evaluationUnits } from "./cel/meter.ts";
import { type PackVariables, variablesOf } from "./cel/scope.ts";
import { ExpressionTracer, untraced } from "./cel/tracer.ts";
import { matches, mismatches, phasesFor } from "./match.ts";
import type { Rule } from "./rule.ts";

/** The rules that are evaluated, and the findings that are explained. */
const maxTraced = 200;
const maxExplained = 32;

export interface PackExplainerOptions {
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly variables: PackVariables;
  /** True where an `allow` of this pack is recorded and never counts. */
  readonly tightenOnly: boolean;
}

/** Explains the verdicts of a loaded pack. Each explanation costs one evaluation's work budget at most. */
export class PackExplainer implements RuleExplainer {
  readonly #options: PackExplainerOptions;

  constructor(options: PackExplainerOptions) {
    this.#options = options;
  }

  explain(action: ActionEnvelope, visible: ActionEnvelope | null): PolicyExplanation {
    const { engine, rules, variables } = this.#options;
    engine.meter.left = evaluationUnits;
    const real = variablesOf(action, variables);
    const seen = visible === action ? real : visible === null ? null : variablesOf(visible, variables);
    const tracer = new ExpressionTracer(engine, { real, visible: seen });
    const traced = orderByMatch(rules, action).map((rule) => this.#counted(traceRule(rule, action, tracer)));
    const decided = traced.filter(hasFinding).slice(0, maxExplained);
    const near = traced.filter((each) => !hasFinding(each)).map((rule) => ({ distance: distanceOf(rule), rule }));
    return { rules: decided, near: near.sort(byDistance).slice(0, maxNear) };
  }

  describeRules(ids: readonly string[]): readonly ExplainedRule[] {
    return this.#options.rules
      .filter(({ id }) => ids.includes(id))
      .slice(0, maxExplained)
      .map((rule) => this.#counted(recallRule(rule)));
  }

  #counted(traced: ExplainedRule): ExplainedRule {
    return this.#options.tightenOnly && traced.decision === "allow" ? { ...traced, mode: "shadow" } : traced;
  }
}

/** The rules of the action's phase and protocol, those whose whole `match` agrees first. */
function orderByMatch(rules: readonly Rule[], action: ActionEnvelope): readonly Rule[] {
  const own = rules.filter(
    ({ match }) => phasesFor(match, action).includes(action.phase) && match.protocols.includes(action.protocol),
  );
  const agreeing = own.filter(({ match }) => matches(match, action));
  return [...agreeing, ...own.filter(({ match }) => !matches(match, action))].slice(0, maxTraced);
}

/** Returns true where the rule contributed a finding to the decision; a lifted rule is recorded but decides nothing. */
function hasFinding({ outcome }: ExplainedRule): boolean {
  return outcome === "held" || outcome === "failed";
}

/**
 * The distance from deciding: 0 for a lifted rule; the share of false operands for a `when`; then the number of keys
 * that differ.
 */
function distanceOf({ outcome, mismatches, conditions }: ExplainedRule): number {
  if (outcome === "match") return 1 + mismatches.length;
  if (outcome === "budget_exceeded") return 1;
  const [first] = conditions;
  return outcome === "when" && first !== undefined ? shareUnmet(first.expression) : 0;
}

function shareUnmet({ parts }: ExplainedExpression): number {
  const asked = parts.filter(({ outcome }) => outcome === "true" || outcome === "false" || outcome === "skipped");
  const held = asked.filter(({ outcome }) => outcome === "true").length;
  return asked.length === 0 ? 1 : 1 - held / asked.length;
}

/** Orders by distance, then the stricter decision first. */
function byDistance(a: NearRule, b: NearRule): number {
  if (a.distance !== b.distance) return a.distance - b.distance;
  if (a.rule.decision === b.rule.decision) return 0;
  return strictest(a.rule.decision, b.rule.decision) === a.rule.decision ? -1 : 1;
}

/** Evaluates a rule in the order of the pack's policy up to the step that settles it, and explains each step. */
function traceRule(rule: Rule, action: ActionEnvelope, tracer: ExpressionTracer): ExplainedRule {
  const differing = mismatches(rule.match, action);
  if (differing.length > 0) {
    const settled = { outcome: "match", why: describeMismatches(differing) } as const;
    return { ...explainRule(rule, settled), mismatches: differing };
  }
  const conditions: ExplainedCondition[] = [];
  const evaluate: EvaluateCondition = (name, { text }) => {
    const expression = tracer.trace(text);
    conditions.push({ name, expression });
    return expression;
  };
  return { ...explainRule(rule, settle(rule, action, evaluate)), conditions };
}

/** A rule that decided about an action which is no longer kept. */
function recallRule(rule: Rule): ExplainedRule {
  const conditions = (["when", "unless"] as const).flatMap((name): ExplainedCondition[] => {
    const { [name]: condition } = rule;
    return condition === undefined ? [] : [{ name, expression: untraced(condition.text) }];
  });
  return { ...explainRule(rule, { outcome: "held", why: "the evidence says so" }), conditions };
}

type Settled = Pick<ExplainedRule, "outcome" | "why">;
type EvaluateCondition = (name: string, condition: Expression) => ExplainedExpression;

/** INVARIANT: the same steps in the same order as in `PackPolicy`; a property test compares the two. */
function settle(rule: Rule, action: ActionEnvelope, evaluate: EvaluateCondition): Settled {
  const { expires, when, unless } = rule;
  if (expires !== undefined && expires <= action.time) return { outcome: "expired", why: `it expired at ${expires}` };
  const traced = when === undefined ? undefined : evaluate("when", when);
  if (traced !== undefined && traced.outcome !== "true") return stop("when", traced);
  const against = unless === undefined ? undefined : evaluate("unless", unless);
  if (against !== undefined && against.outcome !== "false") return stop("unless", against);
  const lifted = settleExceptions(rule, action, evaluate);
  if (lifted !== undefined) return lifted;
  if (rule.requireTicket && isCovered(action.ticket))
    return { outcome: "ticket", why: `ticket \`${action.ticket.id}\` lifts it` };
  return { outcome: "held", why: traced === undefined ? "its `match` agrees" : describeCondition("when", traced) };
}

function settleExceptions(rule: Rule, action: ActionEnvelope, evaluate: EvaluateCondition): Settled | undefined {
  for (const { id, expires, when } of rule.exceptions) {
    if (expires <= action.time) continue;
    const name = `exception ${id}`;
    const traced = when === undefined ? undefined : evaluate(name, when);
    if (traced === undefined || traced.outcome === "true")
      return { outcome: "exception", why: `exception \`${id}\` lifts it` };
    if (traced.outcome !== "false") return stop(name, traced);
  }
  return undefined;
}

/** Explains the condition that settled the rule: it had the wrong value or could not be evaluated. */
function stop(name: string, traced: ExplainedExpression): Settled {
  const why = describeCondition(name, traced);
  return { outcome: stopOutcome(name, traced), why };
}

function stopOutcome(name: string, { outcome }: ExplainedExpression): RuleOutcome {
  if (outcome === "budget_exceeded") return "budget_exceeded";
  if (outcome === "true" || outcome === "false") return name === "when" ? "when" : "unless";
  return "failed";
}

function explainRule(rule: Rule, settled: Settled): ExplainedRule {
  const { id, title, decision, severity, mode, place } = rule;
  const { file, line } = place;
  return { rule: id, title, decision, severity, mode, file, line, ...settled, mismatches: [], conditions: [] };
}

/** The values of the deciding part that a sentence quotes. */
const maxValues = 3;

/** Explains a condition by its innermost deciding part and the values it reads. */
function describeCondition(name: string, traced: ExplainedExpression): string {
  if (traced.outcome === "budget_exceeded")
    return `\`${name}\` was not asked: one explanation may take so much work and no more`;
  if (traced.outcome === "error") return `\`${name}\` could not be evaluated: ${traced.value ?? "no reason is known"}`;
  if (traced.outcome === "value") return `\`${name}\` is neither true nor false: ${traced.value ?? ""}`;
  const deciding = decidingPart(traced);
  // The whole expression is shown beside the sentence.
  if (deciding === traced && traced.outcome === "true") return `\`${name}\` is true`;
  const { text, parts } = deciding;
  const values = parts.filter(({ value }) => value !== null).map(({ text: of, value }) => `\`${of}\` is ${value}`);
  const quoted = values.length === 0 ? "" : ` (${values.slice(0, maxValues).join(", ")})`;
  return `\`${name}\` is ${traced.outcome}: \`${text}\` is ${traced.outcome}${quoted}`;
}

/** Descends to the part where more than one operand, or none, has the same outcome. */
function decidingPart(traced: ExplainedExpression): ExplainedExpression {
  const same = traced.parts.filter(({ outcome }) => outcome === traced.outcome);
  const [only] = same;
  return only === undefined || same.length > 1 ? traced : decidingPart(only);
}

/** `tool` is `read`, not one of `write*`, `delete`. */
function describeMismatches(mismatches: readonly Mismatch[]): string {
  return mismatches
    .map(({ key, expected, got }) => {
      const names = expected.map((each) => `\`${showText(each)}\``).join(" or ");
      return `\`${key}\` is \`${showText(got)}\`, expected ${names}`;
    })
    .join("; ");
}
