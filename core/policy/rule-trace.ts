import { isCovered } from "../kernel/capability-ticket.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { ExplainedCondition, ExplainedExpression, ExplainedRule, RuleOutcome } from "../kernel/explanation.ts";
import type { Expression } from "./cel/engine.ts";
import { type ExpressionTracer, untold } from "./cel/tracer.ts";
import { mismatches } from "./match.ts";
import type { Rule } from "./rule.ts";
import { describeCondition, describeMismatches } from "./rule-reason.ts";

/**
 * Goes through what a rule asks of an action in the order in which the pack's policy does, to the answer that settles it,
 * and says what each part came to.
 */
export function traceRule(rule: Rule, action: ActionEnvelope, tracer: ExpressionTracer): ExplainedRule {
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
export function recallRule(rule: Rule): ExplainedRule {
  const conditions = (["when", "unless"] as const).flatMap((name): ExplainedCondition[] => {
    const { [name]: condition } = rule;
    return condition === undefined ? [] : [{ name, expression: untold(condition.text) }];
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
  if (outcome === "too_dear") return "too_dear";
  if (outcome === "true" || outcome === "false") return name === "when" ? "when" : "unless";
  return "failed";
}

function tell(rule: Rule, settled: Settled): ExplainedRule {
  const { id, title, decision, severity, mode, place } = rule;
  const { file, line } = place;
  return { rule: id, title, decision, severity, mode, file, line, ...settled, mismatches: [], conditions: [] };
}
