import type { ActionEnvelope, Phase } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../kernel/policy.ts";
import { type BreachReason, PluginBreach } from "./breach.ts";
import { Breaker, restMs } from "./breaker.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { encodeInput } from "./plugin-input.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { readPluginVerdict } from "./plugin-verdict.ts";

export interface PluginPolicyOptions {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  /** Where the plugin is asked; elsewhere it abstains. */
  readonly phases: readonly Phase[];
  readonly settings: JsonObject;
  /** Units one call may spend. */
  readonly fuel: number;
  readonly compiled: CompiledModule;
  /** Monotonic. */
  readonly elapsedMs: () => number;
  readonly observer: PluginObserver;
}

export interface PluginObserver {
  readonly breached: (ref: PolicyRef, reason: BreachReason) => void;
  /** The plugin answers `block` to this tenant, unasked, for so long. */
  readonly resting: (ref: PolicyRef, tenant: string, restMs: number) => void;
}

const nothing: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/**
 * A loaded plugin as a policy: synchronous, and but for its rests a pure function of the envelope. Its budget is fuel,
 * not time, so a verdict does not depend on how busy the machine is. A plugin that does not answer within its bounds
 * throws PluginBreach, of which the chain makes `block`.
 */
export class PluginPolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly #options: PluginPolicyOptions;
  readonly #settings: string;
  readonly #breaker: Breaker;
  #machine: PluginMachine | undefined;

  /** Makes the first instance, so that a module that fails before any call is not loaded: throws PluginBreach. */
  constructor(options: PluginPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.#options = options;
    this.#settings = JSON.stringify(options.settings);
    this.#breaker = new Breaker(options.elapsedMs);
    this.#machine = this.#newMachine();
  }

  evaluate(action: ActionEnvelope): Verdict {
    if (!this.#options.phases.includes(action.phase)) return nothing;
    try {
      if (this.#breaker.isResting(action.tenant)) {
        throw new PluginBreach("resting", `the plugin failed too often and is not asked for ${restMs} ms`);
      }
      const answer = this.#ask(encodeInput(this.#settings, action));
      const verdict = readPluginVerdict(answer, this.ref.name, action.phase);
      this.#breaker.answered(action.tenant);
      return verdict;
    } catch (error) {
      this.#note(action.tenant, error);
      throw error;
    }
  }

  #ask(input: Uint8Array): Uint8Array {
    const machine = this.#machine ?? this.#newMachine();
    // Only a machine that answered and could be put back is asked again.
    this.#machine = undefined;
    const answer = machine.call(input);
    if (!machine.worn) this.#machine = machine;
    return answer;
  }

  #newMachine(): PluginMachine {
    return new PluginMachine(this.#options.compiled, this.#options.fuel);
  }

  #note(tenant: string, error: unknown): void {
    if (!(error instanceof PluginBreach)) return;
    this.#options.observer.breached(this.ref, error.reason);
    if (error.reason === "resting" || !this.#breaker.failed(tenant)) return;
    this.#options.observer.resting(this.ref, tenant, restMs);
  }
}
