import type { Capability } from "../action/capability.ts";
import { isCovered, ticketNeed } from "../action/capability-ticket.ts";
import { type Decision, strictest } from "../action/decision.ts";
import type { ActionEnvelope, Phase, Protocol } from "../action/envelope.ts";
import { deepFreeze } from "../action/json.ts";
import {
  type Finding,
  type Mode,
  modes,
  type Policy,
  type PolicyRef,
  type PolicyRule,
  type Verdict,
} from "../action/policy.ts";
import { showText } from "../action/visible-text.ts";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import { evaluationUnits } from "./cel/meter.ts";
import { type PackVariables, type Variables, variablesOf } from "./cel/scope.ts";
import { judgesCalls, type Match, matches, type NameKey, nameKeys, nameOf, readsAnswers } from "./match.ts";
import { PackExplainer, type PackExplainerOptions } from "./pack-explainer.ts";
import { failureOf, findingOf, type Rule, type RuleException } from "./rule.ts";

interface PackPolicyOptions extends PackExplainerOptions {
  readonly ref: PolicyRef;
  readonly mode: Mode;
}

/**
 * A loaded pack as a policy: a pure, synchronous function of the envelope.
 * The strictest rule that matches decides; a rule that cannot be evaluated blocks, and the verdict says which and why.
 */
export class PackPolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly rules: readonly PolicyRule[];
  readonly explainer: PackExplainer;
  readonly #engine: CelEngine;
  readonly #index: RuleIndex<Rule>;
  readonly #rules: readonly Rule[];
  readonly #variables: PackVariables;
  readonly #tightenOnly: boolean;
  /** The results of rules whose finding is the same for every action that they match. */
  readonly #constants = new Map<Rule, RuleResult>();

  constructor(options: PackPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.rules = options.rules.map((rule) => listedRule(rule, options.tightenOnly));
    this.explainer = new PackExplainer(options);
    this.#engine = options.engine;
    this.#index = new RuleIndex(options.rules);
    this.#rules = options.rules;
    this.#variables = options.variables;
    this.#tightenOnly = options.tightenOnly;
    for (const rule of options.rules) {
      const { constant } = rule.message;
      if (constant === undefined || rule.requireTicket) continue;
      this.#constants.set(rule, { finding: deepFreeze(findingOf(rule, constant, this.#tightenOnly)) });
    }
  }

  readsOutput(protocol: Protocol): boolean {
    return this.#rules.some(({ match }) => readsAnswers(match, protocol));
  }

  taintsOutput(protocol: Protocol): boolean {
    return this.#rules.some(
      ({ match, taints }) => taints.length > 0 && match.phases.includes("output") && match.protocols.includes(protocol),
    );
  }

  evaluate(action: ActionEnvelope): Verdict {
    const candidates = this.#index.candidates(action);
    if (candidates.length === 0) return abstained;
    const variables = variablesOf(action, this.#variables);
    const findings: Finding[] = [];
    const errors: string[] = [];
    let decision: Decision | "abstain" = "abstain";
    let risk = 0;
    // Each mode has its own budget: a rule in shadow mode cannot spend what the enforced ones need.
    for (const mode of modes) {
      this.#engine.meter.left = evaluationUnits;
      for (const rule of candidates) {
        const result = rule.mode === mode ? this.#evaluateRule(rule, action, variables) : undefined;
        if (result === undefined) continue;
        const { finding, error } = result;
        findings.push(finding);
        if (error !== undefined) errors.push(error);
        if (finding.mode === "shadow") continue;
        decision = decision === "abstain" ? finding.decision : strictest(decision, finding.decision);
        risk = Math.max(risk, finding.risk);
      }
    }
    return errors.length === 0 ? { decision, findings, risk } : failedEvaluation(findings, risk, errors);
  }

  #evaluateRule(rule: Rule, action: ActionEnvelope, variables: Variables): RuleResult | undefined {
    try {
      if (rule.expires !== undefined && rule.expires <= action.time) return undefined;
      if (rule.when !== undefined && !isTrue(rule.when, variables)) return undefined;
      if (rule.unless !== undefined && isTrue(rule.unless, variables)) return undefined;
      for (const exception of rule.exceptions) {
        if (lifts(exception, action, variables)) return { finding: liftedByException(rule, exception) };
      }
      const constant = this.#constants.get(rule);
      if (constant !== undefined) return constant;
      const message = rule.message.render(variables);
      if (rule.requireTicket) return { finding: findTicket(rule, message, action) };
      return { finding: findingOf(rule, message, this.#tightenOnly) };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      const finding = failureOf(rule);
      // A rule in shadow mode never counts, also where it fails.
      return rule.mode === "shadow" ? { finding } : { finding, error: `\`${rule.id}\`: ${error.message}` };
    }
  }
}

function listedRule(rule: Rule, tightenOnly: boolean): PolicyRule {
  const { id, title, decision, severity, references, expires = null } = rule;
  const mode = tightenOnly && decision === "allow" ? "shadow" : rule.mode;
  return { rule: id, title, decision, severity, mode, references, expires };
}

interface RuleResult {
  readonly finding: Finding;
  readonly error?: string;
}

const abstained: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

function failedEvaluation(findings: readonly Finding[], risk: number, [first, ...others]: readonly string[]): Verdict {
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return { decision: "block", findings, risk, error: `${first}${more}` };
}

function isTrue(condition: Expression, variables: Variables): boolean {
  const value = condition.evaluate(variables);
  if (typeof value === "boolean") return value;
  throw new ExpressionError(`expected \`${showText(condition.text)}\` to be true or false, got another value`);
}

/** Returns true where the exception lifts the rule. An exception whose condition fails does not: the error is the rule's. */
function lifts(exception: RuleException, action: ActionEnvelope, variables: Variables): boolean {
  if (exception.expires <= action.time) return false;
  return exception.when === undefined || isTrue(exception.when, variables);
}

/** A valid ticket lifts the rule as an exception does. Only lifting an enforced rule spends a use of the ticket. */
function findTicket(rule: Rule, message: string, { ticket }: ActionEnvelope): Finding {
  if (!isCovered(ticket)) return findingOf(rule, `${message} (${ticketNeed(ticket)})`, false);
  const lifted = { ...liftedFinding(rule), message: `ticket \`${ticket.id}\` lifts rule \`${rule.id}\`` };
  return rule.mode === "enforce" ? { ...lifted, ticket: ticket.id } : lifted;
}

function liftedByException(rule: Rule, exception: RuleException): Finding {
  const message = `exception \`${exception.id}\` lifts rule \`${rule.id}\`: ${exception.reason} (approved by ${exception.approvedBy})`;
  return { ...liftedFinding(rule), message };
}

/** A finding that is recorded and never counts: a lifted rule has no effect, and evidence still shows it. */
function liftedFinding({ id }: Rule): Omit<Finding, "message"> {
  return { rule: id, decision: "allow", severity: "info", risk: 0, mode: "shadow" };
}

interface IndexedRule {
  readonly match: Match;
  /** Position in the pack; findings are in this order. */
  readonly position: number;
}

/** The rules of one phase, protocol and capability: each under the first name that its `match` has, or under none. */
interface RuleBucket<T> {
  readonly byName: Map<NameKey, NameTable<T>>;
  readonly unnamed: T[];
}

/**
 * Finds the rules that may match an action without testing the others: by phase, protocol and capability first, then by
 * the first name in the rule's `match`. The cost does not grow with rules that cannot match.
 */
export class RuleIndex<T extends IndexedRule> {
  readonly #buckets = new Map<Phase, Map<Protocol, Map<Capability, RuleBucket<T>>>>();

  /** `rules` in the pack's order. */
  constructor(rules: readonly T[]) {
    for (const rule of rules) {
      for (const phase of rule.match.phases) this.#add(rule, phase, rule.match.protocols);
      if (judgesCalls(rule.match) && !rule.match.phases.includes("output")) this.#add(rule, "output", ["model"]);
    }
  }

  #add(rule: T, phase: Phase, protocols: readonly Protocol[]): void {
    const byProtocol = memberOrNew(this.#buckets, phase, () => new Map());
    for (const protocol of protocols) {
      const byCapability = memberOrNew(byProtocol, protocol, () => new Map());
      for (const capability of rule.match.capabilities) {
        addToBucket(memberOrNew(byCapability, capability, newBucket<T>), rule);
      }
    }
  }

  /** The rules whose `match` agrees with the action, in the pack's order. */
  candidates(action: ActionEnvelope): readonly T[] {
    const bucket = this.#buckets.get(action.phase)?.get(action.protocol)?.get(action.capability);
    if (bucket === undefined) return [];
    const found: T[] = [];
    for (const rule of bucket.unnamed) if (matches(rule.match, action)) found.push(rule);
    if (bucket.byName.size === 0) return found;
    const all = new Set(found);
    for (const [key, table] of bucket.byName) {
      for (const rule of table.find(nameOf(action, key))) if (matches(rule.match, action)) all.add(rule);
    }
    return Array.from(all).sort((a, b) => a.position - b.position);
  }
}

function newBucket<T>(): RuleBucket<T> {
  return { byName: new Map(), unnamed: [] };
}

function memberOrNew<Key, Member>(map: Map<Key, Member>, key: Key, make: () => Member): Member {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function addToBucket<T extends IndexedRule>({ byName, unnamed }: RuleBucket<T>, rule: T): void {
  const key = nameKeys.find((name) => rule.match.names.has(name));
  if (key === undefined) {
    unnamed.push(rule);
    return;
  }
  const table = byName.get(key) ?? new NameTable<T>();
  byName.set(key, table);
  table.add(rule, key);
}

/** Rules by the globs of one name: exact names, prefixes and suffixes are looked up, only `*middle*` is tried in turn. */
class NameTable<T> {
  readonly #exact = new Map<string, T[]>();
  readonly #prefixes = new AffixTable<T>((name, length) => name.slice(0, length));
  readonly #suffixes = new AffixTable<T>((name, length) => name.slice(name.length - length));
  readonly #others: T[] = [];

  add(rule: T & IndexedRule, key: NameKey): void {
    for (const glob of rule.match.names.get(key) ?? []) {
      if (glob.exact) append(this.#exact, glob.pattern, rule);
      else if (glob.prefix !== "") this.#prefixes.add(glob.prefix, rule);
      else if (glob.suffix !== "") this.#suffixes.add(glob.suffix, rule);
      else this.#others.push(rule);
    }
  }

  /** Returns all rules that may match the name; some may be returned twice. */
  *find(name: string): Iterable<T> {
    yield* this.#exact.get(name) ?? [];
    yield* this.#prefixes.find(name);
    yield* this.#suffixes.find(name);
    yield* this.#others;
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
    append(this.#rules, affix, rule);
    this.#lengths.add(affix.length);
  }

  *find(name: string): Iterable<T> {
    for (const length of this.#lengths) {
      if (length <= name.length) yield* this.#rules.get(this.#cut(name, length)) ?? [];
    }
  }
}

function append<T>(table: Map<string, T[]>, key: string, rule: T): void {
  const rules = table.get(key);
  if (rules === undefined) table.set(key, [rule]);
  else rules.push(rule);
}
