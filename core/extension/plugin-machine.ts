import { entryPoint } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { HostCall } from "./host-call.ts";
import { Snapshot } from "./snapshot.ts";
import { hostExports, stackBytes } from "./wasm/meter.ts";

/**
 * One instance of a metered module, and what the host holds of it. Its state is that of before its first call until
 * `call`, and again after `call` answered.
 */
export class PluginMachine {
  readonly #host: HostCall;
  readonly #instance: WebAssembly.Instance;
  readonly #globals: ReadonlyMap<string, WebAssembly.Global>;
  readonly #memory: WebAssembly.Memory | undefined;
  readonly #fuel: WebAssembly.Global;
  readonly #stack: WebAssembly.Global;
  readonly #refused: WebAssembly.Global;
  readonly #fuelLimit: bigint;
  readonly #snapshot: Snapshot;

  /** Runs what the module does before its first call, on the same fuel as a call; throws PluginBreach. */
  constructor({ module, state, beginnings }: CompiledModule, fuelLimit: number) {
    this.#host = new HostCall((fuel) => this.#charge(fuel));
    this.#instance = instantiate(module, { host: this.#host.functions });
    this.#fuel = this.#global(hostExports.fuel);
    this.#stack = this.#global(hostExports.stack);
    this.#refused = this.#global(hostExports.refused);
    this.#fuelLimit = BigInt(fuelLimit);
    this.#globals = new Map(state.map((name) => [name, this.#global(name)]));
    const { memory } = this.#instance.exports;
    this.#memory = memory instanceof WebAssembly.Memory ? memory : undefined;
    this.#refill();
    for (const name of beginnings) this.#run(name);
    this.#host.end();
    this.#snapshot = new Snapshot(this.#memory, this.#globals);
  }

  /**
   * One call from a fresh state: the bytes the plugin answered with, a copy. Throws PluginBreach; a machine that threw,
   * or that is `worn`, must not be called again.
   */
  call(input: Uint8Array): Uint8Array {
    this.#refill();
    this.#host.begin(input);
    if (this.#run(entryPoint) !== 0) throw new PluginBreach("plugin_error", "the plugin answered with an error code");
    const answer = this.#host.answer();
    this.#host.end();
    this.#worn = !this.#snapshot.restore(this.#memory, this.#globals);
    return answer;
  }

  /** Fuel the last call took. */
  get fuelUsed(): number {
    return Number(this.#fuelLimit - BigInt(this.#fuel.value));
  }

  /** Whether the memory grew, so that the state of before cannot be had again. */
  get worn(): boolean {
    return this.#worn;
  }
  #worn = false;

  #refill(): void {
    this.#fuel.value = this.#fuelLimit;
    this.#stack.value = stackBytes;
    this.#refused.value = 0;
  }

  #run(name: string): unknown {
    const entry = this.#instance.exports[name];
    if (typeof entry !== "function") throw new TypeError("PluginMachine: expected a metered module");
    try {
      return entry();
    } catch (error) {
      throw this.#breachOf(error);
    }
  }

  #charge(fuel: number): void {
    const left = BigInt(this.#fuel.value) - BigInt(fuel);
    this.#fuel.value = left;
    if (left < 0n) throw this.#exhausted();
  }

  #exhausted(cause?: unknown): PluginBreach {
    return new PluginBreach("fuel_exhausted", `expected an answer within ${this.#fuelLimit} units of fuel`, { cause });
  }

  /** The meter's own globals tell its traps from the module's. */
  #breachOf(error: unknown): unknown {
    if (error instanceof PluginBreach) return error;
    if (BigInt(this.#fuel.value) < 0n) return this.#exhausted(error);
    // The engine's own limit is a RangeError; the meter's is reached first.
    if (Number(this.#stack.value) < 0 || error instanceof RangeError) {
      return new PluginBreach("call_depth", `expected calls within ${stackBytes} bytes of stack`, { cause: error });
    }
    if (!(error instanceof WebAssembly.RuntimeError)) return error;
    if (this.#refused.value !== 0) {
      return new PluginBreach("memory_cap", "the plugin failed after its memory's cap was met", { cause: error });
    }
    return new PluginBreach("trap", "the plugin trapped", { cause: error });
  }

  #global(name: string): WebAssembly.Global {
    const global = this.#instance.exports[name];
    if (!(global instanceof WebAssembly.Global)) throw new TypeError("PluginMachine: expected a metered module");
    return global;
  }
}

/** The module's segments are copied here; nothing of the module runs yet. */
function instantiate(...parts: ConstructorParameters<typeof WebAssembly.Instance>): WebAssembly.Instance {
  try {
    return new WebAssembly.Instance(...parts);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    throw new PluginBreach("trap", "the module has a segment outside its memory or its table");
  }
}
