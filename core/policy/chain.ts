import type { CancelSignal } from "../action/cancellation.ts";
import { type Decision, isDecision, strictest } from "../action/decision.ts";
import { type ActionEnvelope, type Pause, type Protocol, protocols } from "../action/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../action/evaluation.ts";
import { isJsonObject, isLarge } from "../action/json.ts";
import type { ActivePolicy, ActiveRule, Finding, Policy, PolicyRef, Redaction, Verdict } from "../action/policy.ts";
import { mergeRedactions } from "../action/redaction.ts";
import { PluginBreach } from "../plugin/breach.ts";
import { turnsOf } from "../store/pace.ts";
import { definitionGuard } from "./definition-guard.ts";
import { judgeAnswer, scanAnswer } from "./reading/judge-reading.ts";
import { type OutputScan, scanOutputInTurns } from "./reading/output-scan.ts";
import { checkVerdict, describeError, failedVerdict, findDetermining } from "./verdict.ts";

export interface PolicyChainOptions {
  readonly policies: readonly Policy[];
  /** The decision in phase `input` where every enforced policy abstains. */
  readonly defaultDecision: Decision;
  /** The deadline of an asynchronous policy. */
  readonly deadlineMs: number;
  readonly newId: () => string;
  /** Monotonic clock in milliseconds. */
  readonly elapsedMs: () => number;
  /** Without it, large answers are searched in one turn. */
  readonly pause?: Pause;
}

/** An evaluation whose answer was searched in turns: the policies that were active before, and what was found. */
interface Begun {
  readonly active: readonly Policy[];
  readonly scan: OutputScan | undefined;
}

/**
 * Evaluates an action with every policy and combines the verdicts: the strictest decision wins, in any order.
 * A policy that throws, misses the deadline or returns an invalid verdict counts as `block`; none is ever skipped. The
 * definition guard is asked first about a tool whose definition the gateway has findings about. Policies that read answers
 * also judge what a reader sees in them beside their texts one by one.
 *
 * Synchronous where every policy is, but for large answers. An evaluation uses the policies that were active when it began.
 */
export class PolicyChain {
  readonly #options: Omit<PolicyChainOptions, "policies">;
  #policies: readonly Policy[];
  /** The protocols whose answers a policy reads, on trial or not. */
  #readProtocols: ReadonlySet<Protocol>;

  constructor(options: PolicyChainOptions) {
    if (!isDecision(options.defaultDecision))
      throw new TypeError("PolicyChain: expected `defaultDecision` to be a decision");
    if (!(options.deadlineMs > 0 && options.deadlineMs < 2 ** 31))
      throw new TypeError("PolicyChain: expected `deadlineMs` above 0");
    this.#options = options;
    this.#policies = [...options.policies];
    this.#readProtocols = readProtocolsOf(options.policies);
  }

  get policies(): readonly PolicyRef[] {
    return this.#policies.map((policy) => policy.ref);
  }

  /** The policies with their modes, in the order in which they are evaluated. */
  get active(): readonly ActivePolicy[] {
    return this.#policies.map(({ ref, mode }) => ({ ...ref, mode }));
  }

  /** The rules of the policies that list theirs, in the order of evaluation; those of a policy in shadow mode are so too. */
  get rules(): readonly ActiveRule[] {
    return this.#policies.flatMap(({ ref, mode, rules = [] }) =>
      rules.map((rule) => ({ ...rule, policy: ref.name, mode: mode === "shadow" ? mode : rule.mode })),
    );
  }

  /** Returns the active policy of this kind and name. */
  find({ kind, name }: Pick<PolicyRef, "kind" | "name">): Policy | undefined {
    return this.#policies.find(({ ref }) => ref.kind === kind && ref.name === name);
  }

  /** Evaluations that begin from now on use these policies; those in progress keep theirs. */
  replacePolicies(policies: readonly Policy[]): void {
    this.#policies = [...policies];
    this.#readProtocols = readProtocolsOf(policies);
  }

  /** Returns true where the text of such an output can change the decision (enforced policies) or taint the session. */
  readsOutput(protocol: Protocol): boolean {
    return this.#policies.some(
      (policy) =>
        policy.taintsOutput?.(protocol) || (policy.mode === "enforce" && (policy.readsOutput?.(protocol) ?? true)),
    );
  }

  /**
   * `cancel` aborts when nobody waits for the evaluation any more: policies that ask others stop asking, which blocks. `begun`: an
   * evaluation whose answer has been searched.
   */
  evaluate(action: ActionEnvelope, cancel?: CancelSignal, begun?: Begun): Evaluation | Promise<Evaluation> {
    const { elapsedMs, pause } = this.#options;
    const { phase, protocol, output } = action;
    const isRead = begun === undefined && phase === "output" && this.#readProtocols.has(protocol);
    const active = begun?.active ?? this.#policies;
    if (isRead && pause !== undefined && isJsonObject(output) && isLarge(output)) {
      const found = scanOutputInTurns(
        output,
        turnsOf(() => pause(action)),
      );
      return found.then((scan) => this.evaluate(action, cancel, { active, scan }));
    }
    const isQuestioned = action.tool_definition?.findings !== undefined;
    const [started, policies] = [elapsedMs(), isQuestioned ? [definitionGuard, ...active] : active];
    const answers: (PolicyVerdict | Promise<PolicyVerdict>)[] = [];
    const scan = isRead ? scanAnswer(action) : begun?.scan;
    let isPending = false;
    for (const policy of policies) {
      const asked = elapsedMs();
      try {
        const isReadAgain = scan !== undefined && (policy.readsOutput?.(action.protocol) ?? true);
        const answer: unknown = isReadAgain
          ? judgeAnswer(policy, action, scan, cancel)
          : policy.evaluate(action, cancel);
        const isThenable = typeof answer === "object" && answer !== null && "then" in answer;
        if (isThenable && typeof answer.then === "function") {
          isPending = true;
          answers.push(this.#awaitVerdict(policy, action, answer as PromiseLike<unknown>, asked));
        } else answers.push(this.#settle(policy, action, checkVerdict(answer, action), asked));
      } catch (error) {
        answers.push(this.#settle(policy, action, verdictOfFailure(policy.ref, error), asked));
      }
    }
    if (!isPending) return this.#combine(action, policies, answers as readonly PolicyVerdict[], started);
    return Promise.all(answers).then((verdicts) => this.#combine(action, policies, verdicts, started));
  }

  async #awaitVerdict(
    policy: Policy,
    action: ActionEnvelope,
    answer: PromiseLike<unknown>,
    started: number,
  ): Promise<PolicyVerdict> {
    try {
      const settled = await withDeadline(answer, this.#options.deadlineMs + (policy.maxWaitMs ?? 0));
      return this.#settle(policy, action, checkVerdict(settled, action), started);
    } catch (error) {
      return this.#settle(policy, action, verdictOfFailure(policy.ref, error), started);
    }
  }

  /** Adds the policy and its duration to a verdict; `answer` is the reason where there is none. */
  #settle(policy: Policy, { phase }: ActionEnvelope, answer: Verdict | string, started: number): PolicyVerdict {
    const { ref, taints, replayable } = policy;
    const verdict = typeof answer === "string" ? failedVerdict(ref, answer) : answer;
    // Listing a tool never taints. A failed policy taints as if it had found what it looks for.
    const isTainting = taints !== undefined && taints.length > 0 && phase !== "list";
    const findings = isTainting ? addTaints(verdict.findings, taints) : verdict.findings;
    const durationUs = Math.max(0, Math.round((this.#options.elapsedMs() - started) * 1000));
    const settled = { ...verdict, findings, policy: ref, durationUs };
    return Object.freeze(replayable === undefined ? settled : { ...settled, replayable });
  }

  #combine(
    { id: actionId, phase }: ActionEnvelope,
    policies: readonly Policy[],
    answers: readonly PolicyVerdict[],
    started: number,
  ): Evaluation {
    const { newId, defaultDecision, elapsedMs } = this.#options;
    const [verdicts, shadow]: [PolicyVerdict[], PolicyVerdict[]] = [[], []];
    const findings: Finding[] = [];
    const redactions: Redaction[] = [];
    let combined: Decision | undefined;
    let risk = 0;
    for (const [index, verdict] of answers.entries()) {
      if (policies[index]?.mode === "shadow") {
        shadow.push(verdict);
        continue;
      }
      verdicts.push(verdict);
      findings.push(...verdict.findings);
      if (verdict.redactions !== undefined) redactions.push(...verdict.redactions);
      if (verdict.decision !== "abstain") combined = strictest(combined ?? "allow", verdict.decision);
      risk = Math.max(risk, verdict.risk);
    }
    const { determining, approvals } = findDetermining(findings, combined);
    return Object.freeze({
      id: newId(),
      actionId,
      phase,
      // Only acting has a configured default. Listing a tool has no effect, and an output belongs to an action that was
      // allowed: both are allowed unless a rule of their own phase decides otherwise.
      decision: combined ?? (phase === "input" ? defaultDecision : "allow"),
      verdicts: Object.freeze(verdicts),
      shadow: Object.freeze(shadow),
      determining,
      byDefault: combined === undefined,
      approvals,
      risk,
      redactions: redactions.length === 0 ? noRedactions : mergeRedactions(redactions),
      durationUs: Math.max(0, Math.round((elapsedMs() - started) * 1000)),
    });
  }
}

function readProtocolsOf(policies: readonly Policy[]): ReadonlySet<Protocol> {
  return new Set(protocols.filter((protocol) => policies.some((policy) => policy.readsOutput?.(protocol) ?? true)));
}

const noRedactions: readonly Redaction[] = Object.freeze([]);

function addTaints(findings: readonly Finding[], words: readonly string[]): readonly Finding[] {
  return Object.freeze(
    findings.map(({ taints = [], ...finding }) => Object.freeze({ ...finding, taints: [...taints, ...words] })),
  );
}

/** A plugin that is not asked because too many calls wait says which limit that is, and when to come back. */
function verdictOfFailure(ref: PolicyRef, error: unknown): Verdict {
  const isBusy = error instanceof PluginBreach && error.reason === "overloaded";
  return failedVerdict(ref, describeError(error), isBusy ? `: ${error.detail}` : "");
}

function withDeadline(answer: PromiseLike<unknown>, deadlineMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error(`no answer within ${deadlineMs} ms`));
    // An answer that came while the thread was held up by something else is not late.
    const timer = setTimeout(() => setImmediate(fail), deadlineMs);
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
