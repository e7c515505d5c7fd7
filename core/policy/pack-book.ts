import { strictest } from "../kernel/decision.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import {
  type ExplainedExpression,
  type ExplainedRule,
  mostNear,
  type NearRule,
  type PolicyExplanation,
  type RuleBook,
} from "../kernel/explanation.ts";
import type { CelEngine } from "./cel/engine.ts";
import { bindVariables, type PackVariables } from "./cel/scope.ts";
import { ExpressionTracer } from "./cel/tracer.ts";
import { matches } from "./match.ts";
import type { Rule } from "./rule.ts";
import { recallRule, traceRule } from "./rule-trace.ts";

/** Rules that are looked into, those that may have decided first; and rules that are told because they did. */
const mostTraced = 200;
const mostTold = 32;

export interface PackBookOptions {
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly variables: PackVariables;
  /** Whether an `allow` of this pack is only recorded. */
  readonly tightenOnly: boolean;
}

/** The rules of a loaded pack, to be asked why. Takes one evaluation's budget of work at most, whatever is asked. */
export class PackBook implements RuleBook {
  readonly #options: PackBookOptions;

  constructor(options: PackBookOptions) {
    this.#options = options;
  }

  explain(action: ActionEnvelope, shown: ActionEnvelope | null): PolicyExplanation {
    const { engine, rules } = this.#options;
    engine.refill();
    const real = this.#bind(action);
    const seen = shown === action ? real : shown === null ? null : this.#bind(shown);
    const tracer = new ExpressionTracer(engine, { real, shown: seen });
    const traced = byMatch(rules, action).map((rule) => this.#counted(traceRule(rule, action, tracer)));
    const told = traced.filter(saysSomething).slice(0, mostTold);
    const near = traced.filter((each) => !saysSomething(each)).map((rule) => ({ distance: distanceOf(rule), rule }));
    return { rules: told, near: near.sort(byDistance).slice(0, mostNear) };
  }

  recall(ids: readonly string[]): readonly ExplainedRule[] {
    return this.#options.rules
      .filter(({ id }) => ids.includes(id))
      .slice(0, mostTold)
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
  return [...agreeing, ...own.filter(({ match }) => !matches(match, action))].slice(0, mostTraced);
}

/** Whether a rule's finding stands in the verdict; what lifts a rule is recorded too, but is no reason for a decision. */
function saysSomething({ outcome }: ExplainedRule): boolean {
  return outcome === "held" || outcome === "failed";
}

/** 0 for what was lifted; for a `when`, the share of its operands that did not hold; then the keys that differ. */
function distanceOf({ outcome, mismatches, conditions }: ExplainedRule): number {
  if (outcome === "match") return 1 + mismatches.length;
  if (outcome === "too_dear") return 1;
  const [first] = conditions;
  return outcome === "when" && first !== undefined ? shareUnmet(first.expression) : 0;
}

function shareUnmet({ parts }: ExplainedExpression): number {
  const asked = parts.filter(({ outcome }) => outcome === "true" || outcome === "false" || outcome === "not_asked");
  const held = asked.filter(({ outcome }) => outcome === "true").length;
  return asked.length === 0 ? 1 : 1 - held / asked.length;
}

/** The nearest first; of two as near, the stricter. */
function byDistance(a: NearRule, b: NearRule): number {
  if (a.distance !== b.distance) return a.distance - b.distance;
  if (a.rule.decision === b.rule.decision) return 0;
  return strictest(a.rule.decision, b.rule.decision) === a.rule.decision ? -1 : 1;
}
