import { isCovered, ticketNeed } from "../kernel/capability-ticket.ts";
import { type Decision, strictest } from "../kernel/decision.ts";
import type { ActionEnvelope, Protocol } from "../kernel/envelope.ts";
import { type Finding, type Mode, modes, type Policy, type PolicyRef, type Verdict } from "../kernel/policy.ts";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import { bindVariables, type PackVariables, type Variables } from "./cel/scope.ts";
import { showText } from "./display.ts";
import { PackBook } from "./pack-book.ts";
import { failureOf, findingOf, type Rule, type RuleException } from "./rule.ts";
import { RuleIndex } from "./rule-index.ts";

export interface PackPolicyOptions {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly engine: CelEngine;
  readonly rules: readonly Rule[];
  readonly variables: PackVariables;
  /** Whether an `allow` of this pack is only recorded. */
  readonly tightenOnly: boolean;
}

/**
 * A loaded pack as a policy: a pure, synchronous function of the envelope.
 * The strictest rule that holds decides; a rule that cannot be evaluated blocks, and the verdict says which and why.
 */
export class PackPolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly book: PackBook;
  readonly #engine: CelEngine;
  readonly #index: RuleIndex<Rule>;
  readonly #tainting: RuleIndex<Rule>;
  readonly #variables: PackVariables;
  readonly #tightenOnly: boolean;

  constructor(options: PackPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.book = new PackBook(options);
    this.#engine = options.engine;
    this.#index = new RuleIndex(options.rules);
    this.#tainting = new RuleIndex(options.rules.filter(({ taints }) => taints.length > 0));
    this.#variables = options.variables;
    this.#tightenOnly = options.tightenOnly;
  }

  readsOutput(protocol: Protocol): boolean {
    return this.#index.has("output", protocol);
  }

  taintsOutput(protocol: Protocol): boolean {
    return this.#tainting.has("output", protocol);
  }

  evaluate(action: ActionEnvelope): Verdict {
    const candidates = this.#index.candidates(action);
    if (candidates.length === 0) return nothing;
    const variables = bindVariables(action, this.#variables, () => this.#engine.timestamp(action.time));
    const findings: Finding[] = [];
    const errors: string[] = [];
    // Each mode has a budget of its own: a rule on trial cannot spend what the enforced ones need.
    for (const mode of modes) {
      this.#engine.refill();
      for (const rule of candidates) {
        const answer = rule.mode === mode ? this.#ask(rule, action, variables) : undefined;
        if (answer === undefined) continue;
        findings.push(answer.finding);
        if (answer.error !== undefined) errors.push(answer.error);
      }
    }
    return summarize(findings, errors);
  }

  #ask(rule: Rule, action: ActionEnvelope, variables: Variables): Answer | undefined {
    try {
      return this.#judge(rule, action, variables);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      const finding = failureOf(rule);
      // A rule in shadow mode is recorded whatever becomes of it; it never counts.
      return rule.mode === "shadow" ? { finding } : { finding, error: `\`${rule.id}\`: ${error.message}` };
    }
  }

  #judge(rule: Rule, action: ActionEnvelope, variables: Variables): Answer | undefined {
    if (rule.expires !== undefined && rule.expires <= action.time) return undefined;
    if (rule.when !== undefined && !holds(rule.when, variables)) return undefined;
    if (rule.unless !== undefined && holds(rule.unless, variables)) return undefined;
    const exception = rule.exceptions.find((each) => lifts(each, action, variables));
    if (exception !== undefined) return { finding: liftedBy(rule, exception) };
    const message = rule.message.render(variables);
    if (rule.requireTicket) return { finding: judgeTicket(rule, message, action) };
    const silent = this.#tightenOnly && rule.decision === "allow";
    return { finding: findingOf(rule, message, silent ? "shadow" : rule.mode) };
  }
}

interface Answer {
  readonly finding: Finding;
  readonly error?: string;
}

const nothing: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

function summarize(findings: readonly Finding[], errors: readonly string[]): Verdict {
  let decision: Decision | "abstain" = "abstain";
  let risk = 0;
  for (const finding of findings) {
    if (finding.mode === "shadow") continue;
    decision = decision === "abstain" ? finding.decision : strictest(decision, finding.decision);
    risk = Math.max(risk, finding.risk);
  }
  const [first] = errors;
  if (first === undefined) return { decision, findings, risk };
  const others = errors.length === 1 ? "" : ` (and ${errors.length - 1} more)`;
  return { decision: "block", findings, risk, error: `${first}${others}` };
}

function holds(condition: Expression, variables: Variables): boolean {
  const value = condition.evaluate(variables);
  if (typeof value === "boolean") return value;
  throw new ExpressionError(`expected \`${showText(condition.text)}\` to be true or false, got another value`);
}

/** An exception whose own condition fails does not lift: the error is the rule's. */
function lifts(exception: RuleException, action: ActionEnvelope, variables: Variables): boolean {
  if (exception.expires <= action.time) return false;
  return exception.when === undefined || holds(exception.when, variables);
}

/** A ticket lifts a rule as an exception does. Only for an enforced rule does that cost one of its uses. */
function judgeTicket(rule: Rule, message: string, { ticket }: ActionEnvelope): Finding {
  if (!isCovered(ticket)) return findingOf(rule, `${message} (${ticketNeed(ticket)})`, rule.mode);
  const lifted = { ...recorded(rule), message: `ticket \`${ticket.id}\` lifts rule \`${rule.id}\`` };
  return rule.mode === "enforce" ? { ...lifted, ticket: ticket.id } : lifted;
}

function liftedBy(rule: Rule, exception: RuleException): Finding {
  const message = `exception \`${exception.id}\` lifts rule \`${rule.id}\`: ${exception.reason} (approved by ${exception.approvedBy})`;
  return { ...recorded(rule), message };
}

/** Recorded, never counted: what is lifted is as if the rule did not hold, and evidence still shows it. */
function recorded({ id }: Rule): Omit<Finding, "message"> {
  return { rule: id, decision: "allow", severity: "info", risk: 0, mode: "shadow" };
}
