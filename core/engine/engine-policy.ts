import type { CancelSignal } from "../action/cancellation.ts";
import type { ActionEnvelope, Phase } from "../action/envelope.ts";
import type { ExplainedRule, PolicyExplanation, RuleExplainer } from "../action/explanation.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import type { EngineType } from "../config/policy-schema.ts";
import type { BreakerState } from "../egress/breaker.ts";
import { describeError, failedVerdict } from "../policy/verdict.ts";
import { EngineError, type EngineFailure } from "./engine-fault.ts";

/** Policies in another engine. */
export interface Engine {
  readonly type: EngineType;
  /** Its rules, where they can be explained. */
  readonly explainer?: RuleExplainer;
  /** True where another server decides. */
  readonly isRemote?: true;
  /** Returns the verdict on an action of any phase. Throws EngineError where there is none, also when `cancel` aborts. */
  judge(action: ActionEnvelope, cancel?: CancelSignal): Verdict | Promise<Verdict>;
}

/** Explains an action by the rules that `find` returns; by none where the engine has no answer: the verdict itself says why. */
export function explainBy(find: () => readonly ExplainedRule[]): PolicyExplanation {
  try {
    return { rules: find(), near: [] };
  } catch (error) {
    if (error instanceof EngineError) return { rules: [], near: [] };
    throw error;
  }
}

/** Receives what operators count. */
export interface EngineObserver {
  /** Called with each answer that could not be had, which blocks. */
  readonly failed: (engine: EngineType, reason: EngineFailure) => void;
  /** Called when the server of the engine `name` is not asked for a while, and when it is again. */
  readonly circuit: (name: string, state: BreakerState) => void;
}

interface EnginePolicyOptions {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  /** The phases in which the engine is asked; the policy abstains in the others. */
  readonly phases: readonly Phase[];
  readonly engine: Engine;
  readonly observer: EngineObserver;
}

const abstained: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/**
 * An engine's policies in the chain. What fails throws, which the chain turns into `block`; where a server gave an answer, the
 * block has its digest.
 */
export class EnginePolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly explainer?: RuleExplainer;
  readonly replayable?: false;
  readonly #options: EnginePolicyOptions;

  constructor(options: EnginePolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.#options = options;
    if (options.engine.explainer !== undefined) this.explainer = options.engine.explainer;
    if (options.engine.isRemote === true) this.replayable = false;
  }

  readsOutput(): boolean {
    return this.#options.phases.includes("output");
  }

  evaluate(action: ActionEnvelope, cancel?: CancelSignal): Verdict | Promise<Verdict> {
    const { phases, engine } = this.#options;
    if (!phases.includes(action.phase)) return abstained;
    try {
      const verdict = engine.judge(action, cancel);
      return verdict instanceof Promise ? verdict.catch((error) => this.#fail(error)) : verdict;
    } catch (error) {
      return this.#fail(error);
    }
  }

  #fail(error: unknown): Verdict {
    const { engine, observer, ref } = this.#options;
    if (!(error instanceof EngineError)) throw error;
    observer.failed(engine.type, error.reason);
    if (error.answerDigest === undefined) throw error;
    return { ...failedVerdict(ref, describeError(error)), answerDigest: error.answerDigest };
  }
}
