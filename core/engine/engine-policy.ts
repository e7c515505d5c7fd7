import type { ActionEnvelope, Phase } from "../action/envelope.ts";
import type { ExplainedRule, PolicyExplanation, RuleExplainer } from "../action/explanation.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import type { EngineType } from "../config/policy-schema.ts";
import { EngineError, type EngineFailure } from "./engine-fault.ts";

/** Policies in another engine. */
export interface Engine {
  readonly type: EngineType;
  /** Its rules, where they can be explained. */
  readonly explainer?: RuleExplainer;
  /** Returns the verdict on an action of any phase. Throws EngineError where there is none. */
  judge(action: ActionEnvelope): Verdict | Promise<Verdict>;
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

/** An engine's policies in the chain. What fails throws, which the chain turns into `block`. */
export class EnginePolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly explainer?: RuleExplainer;
  readonly #options: EnginePolicyOptions;

  constructor(options: EnginePolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.#options = options;
    if (options.engine.explainer !== undefined) this.explainer = options.engine.explainer;
  }

  readsOutput(): boolean {
    return this.#options.phases.includes("output");
  }

  evaluate(action: ActionEnvelope): Verdict | Promise<Verdict> {
    const { phases, engine } = this.#options;
    if (!phases.includes(action.phase)) return abstained;
    try {
      const verdict = engine.judge(action);
      return verdict instanceof Promise ? verdict.catch((error) => this.#fail(error)) : verdict;
    } catch (error) {
      return this.#fail(error);
    }
  }

  #fail(error: unknown): never {
    const { engine, observer } = this.#options;
    if (error instanceof EngineError) observer.failed(engine.type, error.reason);
    throw error;
  }
}
