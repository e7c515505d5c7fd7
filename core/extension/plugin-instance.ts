import { PluginBreach } from "./breach.ts";
import { HostCall } from "./host-call.ts";
import type { InstanceState } from "./snapshot.ts";
import { hostExports, stackBytes } from "./wasm/meter.ts";

/** One instance of a metered module: runs its exports on fuel, and tells how they ended. */
export class PluginInstance {
  readonly host: HostCall;
  readonly state: InstanceState;
  readonly #instance: WebAssembly.Instance;
  readonly #fuel: WebAssembly.Global;
  readonly #stack: WebAssembly.Global;
  readonly #refused: WebAssembly.Global;
  #fuelLimit = 0;

  /** `state` names the exports of the globals that can change. Nothing of the module runs yet. Throws PluginBreach. */
  constructor(module: WebAssembly.Module, state: readonly string[]) {
    this.host = new HostCall((fuel) => this.#charge(fuel));
    this.#instance = instantiate(module, { host: this.host.functions });
    this.#fuel = this.#global(hostExports.fuel);
    this.#stack = this.#global(hostExports.stack);
    this.#refused = this.#global(hostExports.refused);
    const { memory } = this.#instance.exports;
    this.state = {
      memory: memory instanceof WebAssembly.Memory ? memory : undefined,
      globals: state.map((name) => this.#global(name)),
    };
  }

  /** What runs from now on has so much fuel, the whole stack, and was refused nothing. */
  refill(fuelLimit: number): void {
    this.#fuelLimit = fuelLimit;
    this.#fuel.value = BigInt(fuelLimit);
    this.#stack.value = stackBytes;
    this.#refused.value = 0;
  }

  /** Fuel taken since it was refilled. */
  get fuelUsed(): number {
    return this.#fuelLimit - Number(this.#fuel.value);
  }

  /** What an export answers. Throws PluginBreach where it does not end by itself. */
  run(name: string): unknown {
    const entry = this.#instance.exports[name];
    if (typeof entry !== "function") throw new TypeError("PluginInstance: expected a metered module");
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
    if (!(global instanceof WebAssembly.Global)) throw new TypeError("PluginInstance: expected a metered module");
    return global;
  }
}

/** The module's segments are copied here. */
function instantiate(...parts: ConstructorParameters<typeof WebAssembly.Instance>): WebAssembly.Instance {
  try {
    return new WebAssembly.Instance(...parts);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    throw new PluginBreach("trap", "the module has a segment outside its memory or its table");
  }
}
