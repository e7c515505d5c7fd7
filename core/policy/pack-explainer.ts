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
import { bindVariables, type PackVariables } from "./cel/scope.ts";
import { ExpressionTracer, untraced } from "./cel/tracer.ts";
import { matches, mismatches } from "./match.ts";
import type { Rule } from "./rule.ts";

/** Rules that are looked into, those that may have decided first; and rules that are told because they did. */
const maxTraced = 200;
const maxTold = 32;

interface PackExplainerOptions {
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly variables: PackVariables;
  /** Whether an `allow` of this pack is only recorded. */
  readonly tightenOnly: boolean;
}

/** The rules of a loaded pack, to be asked why. Takes one evaluation's budget of work at most, whatever is asked. */
export class PackExplainer implements RuleExplainer {
  readonly #options: PackExplainerOptions;

  constructor(options: PackExplainerOptions) {
    this.#options = options;
  }

  explain(action: ActionEnvelope, shown: ActionEnvelope | null): PolicyExplanation {
    const { engine, rules } = this.#options;
    engine.refill();
    const real = this.#bind(action);
    const seen = shown === action ? real : shown === null ? null : this.#bind(shown);
    const tracer = new ExpressionTracer(engine, { real, shown: seen });
    const traced = byMatch(rules, action).map((rule) => this.#counted(traceRule(rule, action, tracer)));
    const told = traced.filter(saysSomething).slice(0, maxTold);
    const near = traced.filter((each) => !saysSomething(each)).map((rule) => ({ distance: distanceOf(rule), rule }));
    return { rules: told, near: near.sort(byDistance).slice(0, maxNear) };
  }

  describeRules(ids: readonly string[]): readonly ExplainedRule[] {
    return this.#options.rules
      .filter(({ id }) => ids.includes(id))
      .slice(0, maxTold)
      .map((rule) => this.#counted(recallRule(rule)));
  }

  #counted(told: ExplainedRule): ExplainedRule {
    return this.#options.tightenOnly && told.decision === "allow" ? { ...told, mode: "shadow" } : told;
  }

  #bind(action: ActionEnvelope): ReturnType<typeof bindVariables> {
    const { engine, variables } = this.#options;
    return bindVariables(action, variables, () => engine.timestamp(action.time));
  }
}

/** The rules of the action's phase and protocol, those whose whole `match` agrees first. */
function byMatch(rules: readonly Rule[], action: ActionEnvelope): readonly Rule[] {
  const own = rules.filter(
    ({ match }) => match.phases.includes(action.phase) && match.protocols.includes(action.protocol),
  );
  const agreeing = own.filter(({ match }) => matches(match, action));
  return [...agreeing, ...own.filter(({ match }) => !matches(match, action))].slice(0, maxTraced);
}

/** Whether a rule's finding stands in the verdict; what lifts a rule is recorded too, but is no reason for a decision. */
function saysSomething({ outcome }: ExplainedRule): boolean {
  return outcome === "held" || outcome === "failed";
}

/** 0 for what was lifted; for a `when`, the share of its operands that did not hold; then the keys that differ. */
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

/** The nearest first; of two as near, the stricter. */
function byDistance(a: NearRule, b: NearRule): number {
  if (a.distance !== b.distance) return a.distance - b.distance;
  if (a.rule.decision === b.rule.decision) return 0;
  return strictest(a.rule.decision, b.rule.decision) === a.rule.decision ? -1 : 1;
}

/**
 * Goes through what a rule asks of an action in the order in which the pack's policy does, to the answer that settles it,
 * and says what each part came to.
 */
function traceRule(rule: Rule, action: ActionEnvelope, tracer: ExpressionTracer): ExplainedRule {
  const differing = mismatches(rule.match, action);
  if (differing.length > 0) {
    const settled = { outcome: "match", why: describeMismatches(differing) } as const;
    return { ...tell(rule, settled), mismatches: differing };
  }
  const conditions: ExplainedCondition[] = [];
  const ask: Ask = (name, { text }) => {
    const expression = tracer.trace(text);
    conditions.push({ name, expression });
    return expression;
  };
  return { ...tell(rule, settle(rule, action, ask)), conditions };
}

/** A rule of which nobody knows any more what it was asked about. */
function recallRule(rule: Rule): ExplainedRule {
  const conditions = (["when", "unless"] as const).flatMap((name): ExplainedCondition[] => {
    const { [name]: condition } = rule;
    return condition === undefined ? [] : [{ name, expression: untraced(condition.text) }];
  });
  return { ...tell(rule, { outcome: "held", why: "the evidence says so" }), conditions };
}

type Settled = Pick<ExplainedRule, "outcome" | "why">;
type Ask = (name: string, condition: Expression) => ExplainedExpression;

/** INVARIANT: the same steps in the same order as `PackPolicy` takes them; a property test compares the two. */
function settle(rule: Rule, action: ActionEnvelope, ask: Ask): Settled {
  const { expires, when, unless } = rule;
  if (expires !== undefined && expires <= action.time) return { outcome: "expired", why: `it expired at ${expires}` };
  const told = when === undefined ? undefined : ask("when", when);
  if (told !== undefined && told.outcome !== "true") return stop("when", told);
  const against = unless === undefined ? undefined : ask("unless", unless);
  if (against !== undefined && against.outcome !== "false") return stop("unless", against);
  const lifted = settleExceptions(rule, action, ask);
  if (lifted !== undefined) return lifted;
  if (rule.requireTicket && isCovered(action.ticket))
    return { outcome: "ticket", why: `ticket \`${action.ticket.id}\` lifts it` };
  return { outcome: "held", why: told === undefined ? "its `match` agrees" : describeCondition("when", told) };
}

function settleExceptions(rule: Rule, action: ActionEnvelope, ask: Ask): Settled | undefined {
  for (const { id, expires, when } of rule.exceptions) {
    if (expires <= action.time) continue;
    const name = `exception ${id}`;
    const told = when === undefined ? undefined : ask(name, when);
    if (told === undefined || told.outcome === "true")
      return { outcome: "exception", why: `exception \`${id}\` lifts it` };
    if (told.outcome !== "false") return stop(name, told);
  }
  return undefined;
}

/** Why a condition ended it: it was not as it must be, or nobody can tell. */
function stop(name: string, told: ExplainedExpression): Settled {
  const why = describeCondition(name, told);
  return { outcome: stopOutcome(name, told), why };
}

function stopOutcome(name: string, { outcome }: ExplainedExpression): RuleOutcome {
  if (outcome === "budget_exceeded") return "budget_exceeded";
  if (outcome === "true" || outcome === "false") return name === "when" ? "when" : "unless";
  return "failed";
}

function tell(rule: Rule, settled: Settled): ExplainedRule {
  const { id, title, decision, severity, mode, place } = rule;
  const { file, line } = place;
  return { rule: id, title, decision, severity, mode, file, line, ...settled, mismatches: [], conditions: [] };
}

/** Values of the deciding part that are told in a sentence. */
const maxValues = 3;

/** Why a condition came to what it came to: the innermost part that decided it, and the values of what that asks. */
function describeCondition(name: string, told: ExplainedExpression): string {
  if (told.outcome === "budget_exceeded")
    return `\`${name}\` was not asked: one explanation may take so much work and no more`;
  if (told.outcome === "error") return `\`${name}\` could not be evaluated: ${told.value ?? "no reason is known"}`;
  if (told.outcome === "value") return `\`${name}\` is neither true nor false: ${told.value ?? ""}`;
  const deciding = decidingPart(told);
  // The whole of it stands beside this anyway.
  if (deciding === told && told.outcome === "true") return `\`${name}\` is true`;
  const { text, parts } = deciding;
  const values = parts.filter(({ value }) => value !== null).map(({ text: of, value }) => `\`${of}\` is ${value}`);
  const shown = values.length === 0 ? "" : ` (${values.slice(0, maxValues).join(", ")})`;
  return `\`${name}\` is ${told.outcome}: \`${text}\` is ${told.outcome}${shown}`;
}

/** Down to where more than one part, or none, came to the same: there it was decided. */
function decidingPart(told: ExplainedExpression): ExplainedExpression {
  const same = told.parts.filter(({ outcome }) => outcome === told.outcome);
  const [only] = same;
  return only === undefined || same.length > 1 ? told : decidingPart(only);
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
