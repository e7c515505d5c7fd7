import { isCovered, ticketNeed } from "../action/capability-ticket.ts";
import { type Decision, strictest } from "../action/decision.ts";
import type { ActionEnvelope, Phase, Protocol } from "../action/envelope.ts";
import { type Finding, type Mode, modes, type Policy, type PolicyRef, type Verdict } from "../action/policy.ts";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import { bindVariables, type PackVariables, type Variables } from "./cel/scope.ts";
import { showText } from "./fault.ts";
import { type Match, matches, type NameKey, nameKeys, nameOf } from "./match.ts";
import { PackExplainer } from "./pack-explainer.ts";
import { failureOf, findingOf, type Rule, type RuleException } from "./rule.ts";

interface PackPolicyOptions {
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
  readonly explainer: PackExplainer;
  readonly #engine: CelEngine;
  readonly #index: RuleIndex<Rule>;
  readonly #tainting: RuleIndex<Rule>;
  readonly #variables: PackVariables;
  readonly #tightenOnly: boolean;

  constructor(options: PackPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.explainer = new PackExplainer(options);
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

interface Matched {
  readonly match: Match;
  /** Position in the pack; findings come in this order. */
  readonly position: number;
}

/**
 * Finds the rules an action may concern without asking the others: by phase, protocol and capability first, then by
 * the first name the rule is about. The cost does not grow with rules that cannot match.
 */
export class RuleIndex<T extends Matched> {
  readonly #shelves = new Map<string, Shelf<T>>();

  constructor(rules: readonly T[]) {
    for (const rule of rules) {
      for (const key of shelfKeys(rule.match)) {
        const shelf = this.#shelves.get(key) ?? new Shelf();
        this.#shelves.set(key, shelf);
        shelf.add(rule);
      }
    }
  }

  /** Whether any rule may concern an action of this phase and protocol. */
  has(phase: Phase, protocol: Protocol): boolean {
    return [...this.#shelves.keys()].some((key) => key.startsWith(`${phase} ${protocol} `));
  }

  /** The rules whose `match` agrees with the action, in the pack's order. */
  candidates(action: ActionEnvelope): readonly T[] {
    const shelf = this.#shelves.get(shelfKey(action.phase, action.protocol, action.capability));
    if (shelf === undefined) return [];
    const found = new Set<T>();
    shelf.collect(action, (rule) => {
      if (matches(rule.match, action)) found.add(rule);
    });
    return Array.from(found).sort((a, b) => a.position - b.position);
  }
}

function shelfKey(phase: string, protocol: string, capability: string): string {
  return `${phase} ${protocol} ${capability}`;
}

function* shelfKeys(match: Match): Iterable<string> {
  for (const phase of match.phases) {
    for (const protocol of match.protocols) {
      for (const capability of match.capabilities) yield shelfKey(phase, protocol, capability);
    }
  }
}

/** The rules of one phase, protocol and capability: each under the first name it is about, or under none. */
class Shelf<T extends Matched> {
  readonly #byName = new Map<NameKey, NameTable<T>>();
  readonly #unnamed: T[] = [];

  add(rule: T): void {
    const key = nameKeys.find((name) => rule.match.names.has(name));
    if (key === undefined) {
      this.#unnamed.push(rule);
      return;
    }
    const table = this.#byName.get(key) ?? new NameTable();
    this.#byName.set(key, table);
    table.add(rule, key);
  }

  collect(action: ActionEnvelope, take: (rule: T) => void): void {
    for (const rule of this.#unnamed) take(rule);
    for (const [key, table] of this.#byName) table.collect(nameOf(action, key), take);
  }
}

/** Rules by the globs of one name: whole names, beginnings and ends are looked up, only `*middle*` is tried in turn. */
class NameTable<T> {
  readonly #exact = new Map<string, T[]>();
  readonly #prefixes = new AffixTable<T>((name, length) => name.slice(0, length));
  readonly #suffixes = new AffixTable<T>((name, length) => name.slice(name.length - length));
  readonly #rest: T[] = [];

  add(rule: T & Matched, key: NameKey): void {
    for (const glob of rule.match.names.get(key) ?? []) {
      if (glob.exact) push(this.#exact, glob.pattern, rule);
      else if (glob.prefix !== "") this.#prefixes.add(glob.prefix, rule);
      else if (glob.suffix !== "") this.#suffixes.add(glob.suffix, rule);
      else this.#rest.push(rule);
    }
  }

  collect(name: string, take: (rule: T) => void): void {
    for (const rule of this.#exact.get(name) ?? []) take(rule);
    this.#prefixes.collect(name, take);
    this.#suffixes.collect(name, take);
    for (const rule of this.#rest) take(rule);
  }
}

class AffixTable<T> {
  readonly #rules = new Map<string, T[]>();
  readonly #lengths = new Set<number>();
  readonly #cut: (name: string, length: number) => string;

  constructor(cut: (name: string, length: number) => string) {
    this.#cut = cut;
  }

  add(affix: string, rule: T): void {
    push(this.#rules, affix, rule);
    this.#lengths.add(affix.length);
  }

  collect(name: string, take: (rule: T) => void): void {
    for (const length of this.#lengths) {
      if (length > name.length) continue;
      for (const rule of this.#rules.get(this.#cut(name, length)) ?? []) take(rule);
    }
  }
}

function push<T>(table: Map<string, T[]>, key: string, rule: T): void {
  const rules = table.get(key);
  if (rules === undefined) table.set(key, [rule]);
  else rules.push(rule);
}
