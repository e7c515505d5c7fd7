import type { ActionEnvelope, Phase } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { encodeInput } from "./abi.ts";
import { type BreachReason, PluginBreach } from "./breach.ts";
import { type CompiledModule, compileModule } from "./compiled-module.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { PluginRunner, type PluginRunnerOptions } from "./plugin-runner.ts";
import { readPluginVerdict } from "./plugin-verdict.ts";
import { ModuleFault } from "./wasm/binary.ts";

export interface PluginOptions extends Omit<PluginPolicyOptions, "compiled"> {
  /** The module as its author built it. */
  readonly module: Uint8Array;
  /** Pages of 64 KiB. */
  readonly memoryPages: number;
  /** Tries what was compiled before it becomes a policy; where it rejects, it becomes none. */
  readonly onCompiled?: (compiled: CompiledModule) => Promise<void>;
}

/** Checks, meters and compiles a plugin's module and makes a policy of it. Rejects with PLUGIN_INVALID. */
export function compilePlugin({ module, memoryPages, onCompiled, ...options }: PluginOptions): Promise<PluginPolicy> {
  return tellFaults(options.ref.name, async () => {
    const compiled = await compileModule({
      bytes: module,
      memoryPages,
      fuel: options.fuel,
      settings: options.settings,
    });
    await onCompiled?.(compiled);
    return new PluginPolicy({ ...options, compiled });
  });
}

interface AdmissionOptions extends Pick<PluginOptions, "module" | "memoryPages" | "fuel" | "settings"> {
  /** What faults call the plugin. */
  readonly name: string;
}

/** A module that the sandbox takes and that has one instance at least, for trials. Rejects with PLUGIN_INVALID. */
export function admitModule({ name, module, ...order }: AdmissionOptions): Promise<CompiledModule> {
  return tellFaults(name, async () => {
    const compiled = await compileModule({ bytes: module, ...order });
    new PluginMachine(compiled);
    return compiled;
  });
}

async function tellFaults<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof ModuleFault || cause instanceof PluginBreach)) throw cause;
    throw new GatewayError("PLUGIN_INVALID", `\`${name}\`: ${cause.message}`, { cause });
  }
}

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

interface PluginObserver {
  /** The share of its fuel that a call took, from 0 to 1. */
  readonly spent: (share: number) => void;
  readonly breached: (ref: PolicyRef, reason: BreachReason) => void;
  /** The circuit opened: for `openMs` every action of this tenant is blocked without calling the plugin. */
  readonly circuitOpened: (ref: PolicyRef, tenant: string, openMs: number) => void;
}

const nothing: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });
/** Breaches that are not the plugin's doing. */
const blameless: ReadonlySet<BreachReason> = new Set(["circuit_open", "overloaded", "thread_lost"]);

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
        throw new PluginBreach("circuit_open", `plugin circuit open: blocking without calling it for ${openMs} ms`);
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
    this.#options.observer.circuitOpened(this.ref, tenant, openMs);
  }
}

/** How many breaches in a row make a plugin rest, and for how long. */
const maxInARow = 5;
const openMs = 30_000;

interface Count {
  inARow: number;
  restsUntilMs: number;
}

/**
 * Stops asking a plugin that keeps failing. While it rests the answer is `block`: nothing passes unjudged.
 * Counted by tenant, so that one tenant's hostile arguments cannot make it rest for the others.
 */
class Breaker {
  readonly #elapsedMs: () => number;
  readonly #counts = new Map<string, Count>();

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  isResting(tenant: string): boolean {
    const count = this.#counts.get(tenant);
    return count !== undefined && this.#elapsedMs() < count.restsUntilMs;
  }

  /** Begins to count anew. An answer to a question from before the rest does not end it. */
  answered(tenant: string): void {
    if (!this.isResting(tenant)) this.#counts.delete(tenant);
  }

  /** Counts a breach; true where the plugin rests from now on. One breach after a rest is enough for the next. */
  failed(tenant: string): boolean {
    if (this.isResting(tenant)) return false;
    const inARow = (this.#counts.get(tenant)?.inARow ?? 0) + 1;
    const rests = inARow >= maxInARow;
    this.#counts.set(tenant, { inARow, restsUntilMs: rests ? this.#elapsedMs() + openMs : 0 });
    return rests;
  }
}
