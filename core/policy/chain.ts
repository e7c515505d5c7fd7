import { type Decision, type Evaluation, isDecision, type PolicyVerdict, strictest } from "../action/decision.ts";
import type { ActionEnvelope, Phase, Protocol } from "../action/envelope.ts";
import type { ActivePolicy, Finding, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { mergeRedactions } from "../action/redaction.ts";
import { determiningFindings, readVerdict, requiredApprovals } from "./verdict.ts";

export interface PolicyChainOptions {
  readonly policies: readonly Policy[];
  /** What is decided about an action (phase `input`) no enforced policy says anything about. */
  readonly defaultDecision: Decision;
  /** How long an asynchronous policy may take. */
  readonly deadlineMs: number;
  readonly newId: () => string;
  /** Monotonic, microseconds. */
  readonly elapsedUs: () => number;
}

/** The rule a finding names where a policy could not answer at all. */
const policyErrorRule = "policy_error";

/**
 * Asks every policy about an action and combines the answers: the strictest wins, in any order.
 * A policy that throws, answers late or answers nonsense has answered `block`; nothing is ever skipped.
 *
 * Synchronous where every policy is. One evaluation uses the policies that were there when it began.
 */
export class PolicyChain {
  readonly #options: Omit<PolicyChainOptions, "policies">;
  #policies: readonly Policy[];

  constructor(options: PolicyChainOptions) {
    if (!isDecision(options.defaultDecision)) throw new TypeError("Chain: expected `defaultDecision` to be a decision");
    if (!(options.deadlineMs > 0 && options.deadlineMs < 2 ** 31))
      throw new TypeError("Chain: expected `deadlineMs` above 0");
    this.#options = options;
    this.#policies = [...options.policies];
  }

  get policies(): readonly PolicyRef[] {
    return this.#policies.map((policy) => policy.ref);
  }

  /** The same with their modes. */
  get active(): readonly ActivePolicy[] {
    return this.#policies.map(({ ref, mode }) => ({ ...ref, mode }));
  }

  /** The policy of that kind and name, if one is in force. */
  find({ kind, name }: Pick<PolicyRef, "kind" | "name">): Policy | undefined {
    return this.#policies.find(({ ref }) => ref.kind === kind && ref.name === name);
  }

  /** Evaluations that begin from now on use these; those under way keep theirs. */
  replacePolicies(policies: readonly Policy[]): void {
    this.#policies = [...policies];
  }

  /** Whether what any policy says of such an answer because of its text counts: all that enforced ones say, and taints. */
  readsOutput(protocol: Protocol): boolean {
    return this.#policies.some(
      (policy) =>
        policy.taintsOutput?.(protocol) || (policy.mode === "enforce" && (policy.readsOutput?.(protocol) ?? true)),
    );
  }

  evaluate(action: ActionEnvelope): Evaluation | Promise<Evaluation> {
    const started = this.#options.elapsedUs();
    const policies = this.#policies;
    const answers = policies.map((policy) => this.#ask(policy, action));
    if (areSettled(answers)) return this.#combine(action, policies, answers, started);
    return Promise.all(answers).then((settled) => this.#combine(action, policies, settled, started));
  }

  #ask(policy: Policy, action: ActionEnvelope): PolicyVerdict | Promise<PolicyVerdict> {
    const started = this.#options.elapsedUs();
    const settle = (answer: unknown): PolicyVerdict =>
      this.#settle(policy, action, readVerdict(answer, action), started);
    const fail = (error: unknown): PolicyVerdict => this.#settle(policy, action, reasonOf(error), started);
    try {
      const answer: unknown = policy.evaluate(action);
      if (!isThenable(answer)) return settle(answer);
      return withDeadline(answer, this.#options.deadlineMs).then(settle, fail);
    } catch (error) {
      return fail(error);
    }
  }

  #settle(policy: Policy, { phase }: ActionEnvelope, answer: Verdict | string, started: number): PolicyVerdict {
    const verdict = typeof answer === "string" ? failure(policy.ref, answer) : answer;
    const findings = phase === "list" ? verdict.findings : addTaints(verdict.findings, policy.taints);
    return Object.freeze({ ...verdict, findings, policy: policy.ref, durationUs: this.#since(started) });
  }

  #combine(
    action: ActionEnvelope,
    policies: readonly Policy[],
    answers: readonly PolicyVerdict[],
    started: number,
  ): Evaluation {
    const verdicts = answers.filter((_, index) => policies[index]?.mode !== "shadow");
    const shadow = answers.filter((_, index) => policies[index]?.mode === "shadow");
    const combined = combineVerdicts(verdicts);
    const decision = combined ?? defaultOf(action.phase, this.#options.defaultDecision);
    const findings = verdicts.flatMap((verdict) => verdict.findings);
    const determining = combined === undefined ? [] : determiningFindings(findings, combined);
    return Object.freeze({
      id: this.#options.newId(),
      actionId: action.id,
      phase: action.phase,
      decision,
      verdicts: Object.freeze(verdicts),
      shadow: Object.freeze(shadow),
      determining: Object.freeze(determining),
      byDefault: combined === undefined,
      approvals: requiredApprovals(determining),
      risk: verdicts.reduce((risk, verdict) => Math.max(risk, verdict.risk), 0),
      redactions: mergeRedactions(verdicts.flatMap((verdict) => verdict.redactions ?? [])),
      durationUs: this.#since(started),
    });
  }

  #since(started: number): number {
    return Math.max(0, Math.round(this.#options.elapsedUs() - started));
  }
}

/** What a tool is called taints nobody; what a policy could not judge is taken for what it looks for. */
function addTaints(findings: readonly Finding[], words: readonly string[] = []): readonly Finding[] {
  if (words.length === 0) return findings;
  return Object.freeze(
    findings.map(({ taints = [], ...finding }) => Object.freeze({ ...finding, taints: [...taints, ...words] })),
  );
}

/** The strictest decision given, or undefined where every policy abstained. */
function combineVerdicts(verdicts: readonly Verdict[]): Decision | undefined {
  let decision: Decision | undefined;
  for (const verdict of verdicts) {
    if (verdict.decision === "abstain") continue;
    decision = decision === undefined ? verdict.decision : strictest(decision, verdict.decision);
  }
  return decision;
}

/**
 * The decision where nobody said anything. The configured default is about acting: phase `input`.
 * Seeing a tool's name does nothing, and an answer belongs to an action that was allowed already; both are allowed
 * unless a rule of their own phase says otherwise.
 */
function defaultOf(phase: Phase, configured: Decision): Decision {
  return phase === "input" ? configured : "allow";
}

function failure(ref: PolicyRef, reason: string): Verdict {
  const message = `policy \`${ref.name}\` could not answer, so the action is blocked`;
  const finding = {
    rule: policyErrorRule,
    decision: "block",
    message,
    severity: "high",
    risk: 0,
    mode: "enforce",
  } as const;
  return { decision: "block", findings: Object.freeze([Object.freeze(finding)]), risk: 0, error: reason };
}

function reasonOf(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 512);
}

function areSettled(answers: readonly (PolicyVerdict | Promise<PolicyVerdict>)[]): answers is readonly PolicyVerdict[] {
  return answers.every((answer) => !(answer instanceof Promise));
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function withDeadline(answer: PromiseLike<unknown>, deadlineMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs);
    answer.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
