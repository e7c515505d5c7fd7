import { entryPoint } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { HostCall } from "./host-call.ts";
import { hostExports, stackBytes } from "./wasm/meter.ts";

const pageBytes = 65_536;

/** Answers calls of one plugin, one after the other. Whatever a call did, the next begins from the same state. */
export class PluginMachine {
  readonly #compiled: CompiledModule;
  readonly #snapshot: Snapshot;
  #instance: PluginInstance | undefined;

  /** Throws PluginBreach where the module cannot be instantiated. */
  constructor(compiled: CompiledModule) {
    this.#compiled = compiled;
    // A copy of its own: shared memory is dear to copy from.
    this.#snapshot = { ...compiled.snapshot, bytes: compiled.snapshot.bytes.slice() };
    this.#instance = this.#newInstance();
  }

  /** The bytes that an export of the plugin answered with, a copy. Throws PluginBreach. */
  call(input: Uint8Array, fuelLimit: number, entry: string = entryPoint): Uint8Array {
    const instance = this.#instance ?? this.#newInstance();
    // Only an instance that was put back is asked again.
    this.#instance = undefined;
    try {
      instance.refill(fuelLimit);
      instance.host.begin(input);
      if (instance.run(entry) !== 0) {
        throw new PluginBreach("plugin_error", "the plugin answered with an error code");
      }
      return instance.host.answer();
    } finally {
      this.#fuelUsed = instance.fuelUsed;
      this.#reset(instance);
    }
  }

  /** Fuel the last call took: more than it was given where that ran out. */
  get fuelUsed(): number {
    return this.#fuelUsed;
  }
  #fuelUsed = 0;

  #reset(instance: PluginInstance): void {
    instance.host.end();
    // Memory cannot shrink, and its size can be seen.
    if ((instance.state.memory?.buffer.byteLength ?? 0) > this.#snapshot.memoryBytes) return;
    restoreSnapshot(this.#snapshot, instance.state);
    this.#instance = instance;
  }

  #newInstance(): PluginInstance {
    const { module, state } = this.#compiled;
    const instance = new PluginInstance(module, state);
    const { memory } = instance.state;
    // Its beginnings, which do not run again, may have grown it.
    memory?.grow((this.#snapshot.memoryBytes - memory.buffer.byteLength) / pageBytes);
    restoreSnapshot(this.#snapshot, instance.state);
    return instance;
  }
}

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

const grainBytes = 4_096;

/** A stretch of memory, as it is before each call: bytes that are kept from `from` on, or nothing but 0. */
interface Stretch {
  readonly at: number;
  readonly length: number;
  readonly from: number | undefined;
}

/** The state of an instance before each call: plain data, whose bytes threads share. */
export interface Snapshot {
  /** In the order in which the globals were given. */
  readonly globals: readonly (number | bigint)[];
  readonly memoryBytes: number;
  /** All of the memory, from its beginning to its end. */
  readonly stretches: readonly Stretch[];
  readonly bytes: Uint8Array;
}

/** What the snapshot is of: an instance's memory, where it has one, and its globals that can change. */
interface InstanceState {
  readonly memory: WebAssembly.Memory | undefined;
  readonly globals: readonly WebAssembly.Global[];
}

export function takeSnapshot({ memory, globals }: InstanceState): Snapshot {
  const now = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
  const stretches = stretchesOf(now);
  const kept = stretches.filter(({ from }) => from !== undefined);
  const bytes = new Uint8Array(new SharedArrayBuffer(kept.reduce((sum, { length }) => sum + length, 0)));
  for (const { at, length, from } of kept) bytes.set(now.subarray(at, at + length), from);
  return { globals: globals.map(({ value }) => value), memoryBytes: now.length, stretches, bytes };
}

/** Puts an instance's globals and as much memory as there was before each call back to what they were. */
function restoreSnapshot({ globals, stretches, bytes }: Snapshot, state: InstanceState): void {
  for (let index = 0; index < globals.length; index++) {
    const global = state.globals[index];
    const value = globals[index];
    if (global !== undefined && value !== undefined) global.value = value;
  }
  if (state.memory === undefined) return;
  const memory = new Uint8Array(state.memory.buffer);
  for (const { at, length, from } of stretches) {
    if (from === undefined) memory.fill(0, at, at + length);
    else memory.set(bytes.subarray(from, from + length), at);
  }
}

function stretchesOf(memory: Uint8Array): Stretch[] {
  const stretches: Stretch[] = [];
  let kept = 0;
  for (let at = 0; at < memory.length; at += grainBytes) {
    const isKept = memory.subarray(at, at + grainBytes).some((byte) => byte !== 0);
    const last = stretches.at(-1);
    if (last !== undefined && (last.from !== undefined) === isKept) {
      stretches[stretches.length - 1] = { ...last, length: last.length + grainBytes };
    } else {
      stretches.push({ at, length: grainBytes, from: isKept ? kept : undefined });
    }
    if (isKept) kept += grainBytes;
  }
  return stretches;
}
