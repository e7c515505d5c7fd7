import type { ActionEnvelope, Phase } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../kernel/policy.ts";
import { type BreachReason, PluginBreach } from "./breach.ts";
import { Breaker, restMs } from "./breaker.ts";
import { encodeInput } from "./plugin-input.ts";
import { PluginRunner, type PluginRunnerOptions } from "./plugin-runner.ts";
import { readPluginVerdict } from "./plugin-verdict.ts";

export interface PluginPolicyOptions extends Omit<PluginRunnerOptions, "plugin" | "onSpent"> {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  /** Where the plugin is asked; elsewhere it abstains. */
  readonly phases: readonly Phase[];
  /** What each of its findings taints the session with; nothing unless told. */
  readonly taints?: readonly string[];
  readonly settings: JsonObject;
  readonly observer: PluginObserver;
}

export interface PluginObserver {
  /** The share of its fuel that a call took, from 0 to 1. */
  readonly spent: (share: number) => void;
  readonly breached: (ref: PolicyRef, reason: BreachReason) => void;
  /** The plugin answers `block` to this tenant, unasked, for so long. */
  readonly resting: (ref: PolicyRef, tenant: string, restMs: number) => void;
}

const nothing: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });
/** Breaches that are not the plugin's doing. */
const blameless: ReadonlySet<BreachReason> = new Set(["resting", "overloaded", "thread_lost"]);

/**
 * A loaded plugin as a policy: but for its rests a pure function of the envelope. Its budget is fuel, not time, so a
 * verdict does not depend on how busy the machine is. Short calls are answered at once, long ones by a promise. A plugin
 * that does not answer within its bounds fails with PluginBreach, of which the chain makes `block`.
 */
export class PluginPolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly taints: readonly string[];
  readonly #options: PluginPolicyOptions;
  readonly #settings: string;
  readonly #breaker: Breaker;
  readonly #runner: PluginRunner;

  /** Throws PluginBreach where the module cannot be instantiated. */
  constructor(options: PluginPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.taints = options.taints ?? [];
    this.#options = options;
    this.#settings = JSON.stringify(options.settings);
    this.#breaker = new Breaker(options.elapsedMs);
    this.#runner = new PluginRunner({ ...options, plugin: options.ref.name, onSpent: options.observer.spent });
  }

  readsOutput(): boolean {
    return this.#options.phases.includes("output");
  }

  taintsOutput(): boolean {
    return this.taints.length > 0 && this.readsOutput();
  }

  evaluate(action: ActionEnvelope): Verdict | Promise<Verdict> {
    if (!this.#options.phases.includes(action.phase)) return nothing;
    const { tenant } = action;
    try {
      if (this.#breaker.isResting(tenant)) {
        throw new PluginBreach("resting", `the plugin failed too often and is not asked for ${restMs} ms`);
      }
      const answer = this.#runner.run(encodeInput(this.#settings, action), tenant);
      return answer instanceof Promise ? this.#readLater(answer, action) : this.#read(answer, action);
    } catch (error) {
      this.#note(tenant, error);
      throw error;
    }
  }

  async #readLater(answer: Promise<Uint8Array>, action: ActionEnvelope): Promise<Verdict> {
    try {
      return this.#read(await answer, action);
    } catch (error) {
      this.#note(action.tenant, error);
      throw error;
    }
  }

  #read(answer: Uint8Array, { tenant, phase }: ActionEnvelope): Verdict {
    const verdict = readPluginVerdict(answer, this.ref.name, phase);
    this.#breaker.answered(tenant);
    return verdict;
  }

  #note(tenant: string, error: unknown): void {
    if (!(error instanceof PluginBreach)) return;
    this.#options.observer.breached(this.ref, error.reason);
    if (blameless.has(error.reason) || !this.#breaker.failed(tenant)) return;
    this.#options.observer.resting(this.ref, tenant, restMs);
  }
}
