import { setImmediate } from "node:timers/promises";
import type { ActionEnvelope, Phase } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isLarge, type JsonObject } from "../action/json.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { turnsOf } from "../store/pace.ts";
import { pluginInput, pluginInputInTurns } from "./abi.ts";
import { type BreachReason, PluginBreach } from "./breach.ts";
import { compileModule } from "./compiled-module.ts";
import { type CompiledModule, PluginMachine } from "./plugin-machine.ts";
import { maxInputHere, openHere, PluginRunner, type PluginRunnerOptions } from "./plugin-runner.ts";
import { VerdictReader } from "./plugin-verdict.ts";
import { ModuleFault } from "./wasm/binary.ts";

export interface PluginOptions extends Omit<PluginPolicyOptions, "compiled" | "machine"> {
  /** The module as built by its author. */
  readonly module: Uint8Array;
  /** Pages of 64 KiB. */
  readonly memoryPages: number;
  /** Called with the compiled module before the policy is created; where it rejects, none is. */
  readonly onCompiled?: (compiled: CompiledModule) => Promise<void>;
}

/** Checks, meters and compiles a plugin's module into a policy. Rejects with PLUGIN_INVALID. */
export function compilePlugin({ module, memoryPages, onCompiled, ...options }: PluginOptions): Promise<PluginPolicy> {
  return asPluginInvalid(options.ref.name, async () => {
    const compiled = await compileModule({
      bytes: module,
      memoryPages,
      fuel: options.fuel,
      settings: options.settings,
    });
    await onCompiled?.(compiled);
    return new PluginPolicy({ ...options, compiled, machine: await openHere(compiled) });
  });
}

interface AdmissionOptions extends Pick<PluginOptions, "module" | "memoryPages" | "fuel" | "settings"> {
  /** The plugin's name in faults. */
  readonly name: string;
}

/** Compiles a module and instantiates it once, for tests. Rejects with PLUGIN_INVALID. */
export function admitModule({ name, module, ...order }: AdmissionOptions): Promise<CompiledModule> {
  return asPluginInvalid(name, async () => {
    const compiled = await compileModule({ bytes: module, ...order });
    await PluginMachine.open(compiled);
    return compiled;
  });
}

async function asPluginInvalid<T>(name: string, work: () => Promise<T>): Promise<T> {
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
  /** The phases in which the plugin is called; it abstains in the others. */
  readonly phases: readonly Phase[];
  /** The taints of each of its findings; none by default. */
  readonly taints?: readonly string[];
  readonly settings: JsonObject;
  readonly observer: PluginObserver;
}

interface PluginObserver {
  /** Called with the share of its fuel that a call used, from 0 to 1. */
  readonly spent: (share: number) => void;
  readonly breached: (ref: PolicyRef, reason: BreachReason) => void;
  /** Called when the circuit opens: for `openMs` every action of this tenant is blocked without calling the plugin. */
  readonly circuitOpened: (ref: PolicyRef, tenant: string, openMs: number) => void;
}

const abstained: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });
/** Breaches that the plugin did not cause. */
const externalReasons: ReadonlySet<BreachReason> = new Set(["circuit_open", "overloaded", "thread_lost"]);

/**
 * A loaded plugin as a policy: a pure function of the envelope while its circuit is closed. Its budget is fuel, not
 * time, so a verdict does not depend on the load of the machine. Short calls return at once, long ones return a
 * promise. A failed call throws PluginBreach, which the chain turns into `block`.
 */
export class PluginPolicy implements Policy {
  readonly ref: PolicyRef;
  readonly mode: Mode;
  readonly taints: readonly string[];
  readonly maxWaitMs: number;
  readonly #options: PluginPolicyOptions;
  readonly #settings: string;
  readonly #breaker: Breaker;
  readonly #runner: PluginRunner;
  readonly #verdicts: VerdictReader;

  constructor(options: PluginPolicyOptions) {
    this.ref = options.ref;
    this.mode = options.mode;
    this.taints = options.taints ?? [];
    this.maxWaitMs = options.pool.maxWaitMs;
    this.#options = options;
    this.#settings = JSON.stringify(options.settings);
    this.#breaker = new Breaker(options.elapsedMs);
    this.#verdicts = new VerdictReader(options.ref.name);
    this.#runner = new PluginRunner({ ...options, plugin: options.ref.name, onSpent: options.observer.spent });
  }

  readsOutput(): boolean {
    return this.#options.phases.includes("output");
  }

  taintsOutput(): boolean {
    return this.taints.length > 0 && this.readsOutput();
  }

  evaluate(action: ActionEnvelope): Verdict | Promise<Verdict> {
    if (!this.#options.phases.includes(action.phase)) return abstained;
    const { tenant, principal } = action;
    try {
      if (this.#breaker.isOpen(tenant)) {
        throw new PluginBreach("circuit_open", `plugin circuit open: blocking without calling it for ${openMs} ms`);
      }
      const judged = action.phase === "output" ? (action.output ?? null) : action.arguments;
      const answer = isLarge(judged, maxInputHere)
        ? this.#runLong(action)
        : this.#runner.run(pluginInput(this.#settings, action), tenant, principal.id);
      return answer instanceof Promise ? this.#readAsync(answer, action) : this.#read(answer, action);
    } catch (error) {
      this.#countBreach(tenant, error);
      throw error;
    }
  }

  /** Runs a call in the pool, whose input is made in turns: of megabytes that takes tens of milliseconds. */
  async #runLong(action: ActionEnvelope): Promise<Uint8Array> {
    const turns = turnsOf(setImmediate);
    await turns.next();
    const input = await pluginInputInTurns(this.#settings, action, turns);
    return this.#runner.run(input, action.tenant, action.principal.id);
  }

  async #readAsync(answer: Promise<Uint8Array>, action: ActionEnvelope): Promise<Verdict> {
    try {
      return this.#read(await answer, action);
    } catch (error) {
      this.#countBreach(action.tenant, error);
      throw error;
    }
  }

  #read(answer: Uint8Array, { tenant, phase }: ActionEnvelope): Verdict {
    const verdict = this.#verdicts.read(answer, phase);
    this.#breaker.recordSuccess(tenant);
    return verdict;
  }

  #countBreach(tenant: string, error: unknown): void {
    if (!(error instanceof PluginBreach)) return;
    this.#options.observer.breached(this.ref, error.reason);
    if (externalReasons.has(error.reason) || !this.#breaker.recordFailure(tenant)) return;
    this.#options.observer.circuitOpened(this.ref, tenant, openMs);
  }
}

/** The consecutive breaches that open the circuit, and the time until it closes. */
const maxInARow = 5;
const openMs = 30_000;

interface Count {
  inARow: number;
  openUntilMs: number;
}

/**
 * A circuit breaker: stops calling a plugin that keeps failing. While it is open every action is blocked. Counts per
 * tenant, so that one tenant's hostile arguments cannot open it for the others.
 */
class Breaker {
  readonly #elapsedMs: () => number;
  readonly #counts = new Map<string, Count>();

  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  isOpen(tenant: string): boolean {
    const count = this.#counts.get(tenant);
    return count !== undefined && this.#elapsedMs() < count.openUntilMs;
  }

  /** Resets the count. The answer to a call from before the circuit opened does not close it. */
  recordSuccess(tenant: string): void {
    if (!this.isOpen(tenant)) this.#counts.delete(tenant);
  }

  /** Counts a breach; returns true where that opens the circuit. After it closes, one breach opens it again. */
  recordFailure(tenant: string): boolean {
    if (this.isOpen(tenant)) return false;
    const inARow = (this.#counts.get(tenant)?.inARow ?? 0) + 1;
    const opens = inARow >= maxInARow;
    this.#counts.set(tenant, { inARow, openUntilMs: opens ? this.#elapsedMs() + openMs : 0 });
    return opens;
  }
}
