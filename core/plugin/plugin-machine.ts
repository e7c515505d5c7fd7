import { entryPoint } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { HostCall } from "./host-call.ts";
import { hostExports, type MeteredModule, stackBytes } from "./wasm/meter.ts";

const pageBytes = 65_536;

/** A checked, metered, compiled and initialised module. Can be shared between threads. */
export interface CompiledModule extends Pick<MeteredModule, "state"> {
  readonly module: WebAssembly.Module;
  readonly snapshot: Snapshot;
}

/** Runs calls of one plugin, one at a time. Every call starts from the same state, whatever the previous one did. */
export class PluginMachine {
  /** Fuel used by the last call; more than its limit where that ran out. */
  fuelUsed = 0;
  readonly #compiled: CompiledModule;
  readonly #snapshot: Snapshot;
  #instance: PluginInstance | undefined;

  /** Throws PluginBreach where the module cannot be instantiated. */
  constructor(compiled: CompiledModule) {
    this.#compiled = compiled;
    // A private copy: copying from shared memory is slow.
    this.#snapshot = { ...compiled.snapshot, bytes: compiled.snapshot.bytes.slice() };
    this.#instance = this.#newInstance();
  }

  /** Calls an export of the plugin and returns a copy of its output. Throws PluginBreach. */
  call(input: Uint8Array, fuelLimit: number, entry: string = entryPoint): Uint8Array {
    const instance = this.#instance ?? this.#newInstance();
    // An instance is reused only after it was reset.
    this.#instance = undefined;
    try {
      instance.refill(fuelLimit);
      instance.host.begin(input);
      if (instance.run(entry) !== 0) {
        throw new PluginBreach("plugin_error", "the plugin answered with an error code");
      }
      return instance.host.answer();
    } finally {
      this.fuelUsed = instance.fuelUsed;
      this.#reset(instance);
    }
  }

  #reset(instance: PluginInstance): void {
    instance.host.end();
    // Memory cannot shrink and its size is visible, so a grown instance is dropped.
    if ((instance.state.memory?.buffer.byteLength ?? 0) > this.#snapshot.memoryBytes) return;
    restoreSnapshot(this.#snapshot, instance.state);
    this.#instance = instance;
  }

  #newInstance(): PluginInstance {
    const { module, state } = this.#compiled;
    const instance = new PluginInstance(module, state);
    const { memory } = instance.state;
    // Initialisation, which does not run again, may have grown the memory.
    memory?.grow((this.#snapshot.memoryBytes - memory.buffer.byteLength) / pageBytes);
    restoreSnapshot(this.#snapshot, instance.state);
    return instance;
  }
}

/** One instance of a metered module: runs its exports with fuel and classifies their failures. */
export class PluginInstance {
  readonly host: HostCall;
  readonly state: InstanceState;
  readonly #instance: WebAssembly.Instance;
  readonly #fuel: WebAssembly.Global;
  readonly #stack: WebAssembly.Global;
  readonly #refused: WebAssembly.Global;
  #fuelLimit = 0;

  /** `state` names the exports of the mutable globals. Runs nothing of the module yet. Throws PluginBreach. */
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

  /** Resets fuel, stack and the refused-growth flag for the next run. */
  refill(fuelLimit: number): void {
    this.#fuelLimit = fuelLimit;
    this.#fuel.value = BigInt(fuelLimit);
    this.#stack.value = stackBytes;
    this.#refused.value = 0;
  }

  /** Fuel used since the last refill. */
  get fuelUsed(): number {
    return this.#fuelLimit - Number(this.#fuel.value);
  }

  /** Calls an export and returns its result. Throws PluginBreach where it traps or exceeds a limit. */
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

  /** The meter's globals distinguish its traps from the module's. */
  #breachOf(error: unknown): unknown {
    if (error instanceof PluginBreach) return error;
    if (BigInt(this.#fuel.value) < 0n) return this.#exhausted(error);
    // The engine's own limit is a RangeError; the meter's limit is reached first.
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

/** Instantiates the module, which copies its segments. */
function instantiate(...parts: ConstructorParameters<typeof WebAssembly.Instance>): WebAssembly.Instance {
  try {
    return new WebAssembly.Instance(...parts);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    throw new PluginBreach("trap", "the module has a segment outside its memory or its table");
  }
}

const chunkBytes = 4_096;

/** A range of memory before each call: bytes stored in the snapshot at `from`, or zeros where `from` is undefined. */
interface MemoryRange {
  readonly at: number;
  readonly length: number;
  readonly from: number | undefined;
}

/** The state of an instance before each call: plain data whose bytes threads share. */
export interface Snapshot {
  /** In the order of the instance's globals. */
  readonly globals: readonly (number | bigint)[];
  readonly memoryBytes: number;
  /** Covers the whole memory. */
  readonly ranges: readonly MemoryRange[];
  readonly bytes: Uint8Array;
}

/** The mutable state of an instance: its memory, if it has one, and its mutable globals. */
interface InstanceState {
  readonly memory: WebAssembly.Memory | undefined;
  readonly globals: readonly WebAssembly.Global[];
}

export function takeSnapshot({ memory, globals }: InstanceState): Snapshot {
  const now = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
  const ranges = rangesOf(now);
  const kept = ranges.filter(({ from }) => from !== undefined);
  const bytes = new Uint8Array(new SharedArrayBuffer(kept.reduce((sum, { length }) => sum + length, 0)));
  for (const { at, length, from } of kept) bytes.set(now.subarray(at, at + length), from);
  return { globals: globals.map(({ value }) => value), memoryBytes: now.length, ranges, bytes };
}

/** Restores an instance's globals and the snapshot's memory. */
function restoreSnapshot({ globals, ranges, bytes }: Snapshot, state: InstanceState): void {
  for (let index = 0; index < globals.length; index++) {
    const global = state.globals[index];
    const value = globals[index];
    if (global !== undefined && value !== undefined) global.value = value;
  }
  if (state.memory === undefined) return;
  const memory = new Uint8Array(state.memory.buffer);
  for (const { at, length, from } of ranges) {
    if (from === undefined) memory.fill(0, at, at + length);
    else memory.set(bytes.subarray(from, from + length), at);
  }
}

function rangesOf(memory: Uint8Array): MemoryRange[] {
  const ranges: MemoryRange[] = [];
  let kept = 0;
  for (let at = 0; at < memory.length; at += chunkBytes) {
    const isKept = memory.subarray(at, at + chunkBytes).some((byte) => byte !== 0);
    const last = ranges.at(-1);
    if (last !== undefined && (last.from !== undefined) === isKept) {
      ranges[ranges.length - 1] = { ...last, length: last.length + chunkBytes };
    } else {
      ranges.push({ at, length: chunkBytes, from: isKept ? kept : undefined });
    }
    if (isKept) kept += chunkBytes;
  }
  return ranges;
}
