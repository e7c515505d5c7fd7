import type { Plugin } from "@extism/extism";
import { entryPoint } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { openEngine } from "./engine.ts";
import { HostCall } from "./host-call.ts";
import { type InstanceState, restoreSnapshot, type Snapshot } from "./snapshot.ts";
import { hostExports, type MeteredModule, stackBytes } from "./wasm/meter.ts";
import { pageBytes } from "./wasm/module.ts";

/** A checked, metered, compiled and initialised module. Can be shared between threads. */
export interface CompiledModule extends Pick<MeteredModule, "state"> {
  readonly module: WebAssembly.Module;
  readonly snapshot: Snapshot;
  /** The values of `config_get`. */
  readonly config: Readonly<Record<string, string>>;
}

/** Runs calls of one plugin, one at a time. Every call starts from the same state, whatever the previous one did. */
export class PluginMachine {
  /** Fuel used by the last call; more than its limit where that ran out. */
  fuelUsed = 0;
  /** The engine's own error of the last call, if it ended in one. */
  engineError: Promise<unknown> | undefined;
  readonly #compiled: CompiledModule;
  readonly #snapshot: Snapshot;
  #instance: PluginInstance | undefined;
  #opening: Promise<void> | undefined;

  private constructor(compiled: CompiledModule) {
    this.#compiled = compiled;
    // A private copy: copying from shared memory is slow.
    this.#snapshot = { ...compiled.snapshot, bytes: compiled.snapshot.bytes.slice() };
  }

  /** Rejects with PluginBreach where the module cannot be instantiated. */
  static async open(compiled: CompiledModule): Promise<PluginMachine> {
    const machine = new PluginMachine(compiled);
    await machine.prepare();
    return machine;
  }

  /** False after a call that grew its memory, until `prepare` resolves: memory cannot shrink, so its instance is gone. */
  get isReady(): boolean {
    return this.#instance !== undefined;
  }

  /** Makes an instance where there is none. */
  async prepare(): Promise<void> {
    if (this.#instance !== undefined) return;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  /**
   * Calls an export of the plugin and returns its output, maybe as a part of a larger buffer. Runs to its end at once, so
   * calls cannot overlap. The guest may write into the input. Throws PluginBreach. Must be ready.
   */
  call(input: Uint8Array, fuelLimit: number, entry: string = entryPoint): Uint8Array {
    const instance = this.#instance;
    if (instance === undefined) throw new TypeError("PluginMachine: expected a call of a machine that is ready");
    // An instance is reused only after it was reset.
    this.#instance = undefined;
    try {
      instance.refill(fuelLimit);
      instance.run(entry, input);
      return instance.host.answer();
    } finally {
      this.fuelUsed = instance.fuelUsed;
      this.engineError = instance.engineError;
      this.#reset(instance);
    }
  }

  #reset(instance: PluginInstance): void {
    instance.clearHost();
    if ((instance.state.memory?.buffer.byteLength ?? 0) > this.#snapshot.memoryBytes) return;
    restoreSnapshot(this.#snapshot, instance.state, instance.takeWritten());
    this.#instance = instance;
  }

  async #open(): Promise<void> {
    const instance = await PluginInstance.open(this.#compiled);
    const { memory } = instance.state;
    memory?.grow((this.#snapshot.memoryBytes - memory.buffer.byteLength) / pageBytes);
    restoreSnapshot(this.#snapshot, instance.state);
    this.#instance = instance;
  }
}

type OpenedModule = Pick<CompiledModule, "module" | "state" | "config">;

/** A plugin of Extism made of a metered module: runs its exports with fuel and classifies their failures. */
export class PluginInstance {
  readonly host: HostCall;
  engineError: Promise<unknown> | undefined;
  #plugin: Plugin | undefined;
  #parts: InstanceParts | undefined;
  #fuelLimit = 0;

  private constructor({ config }: OpenedModule) {
    this.host = new HostCall({
      charge: (fuel) => this.#charge(fuel),
      guestMemory: () => this.#parts?.state.memory,
      mark: (at, length) => this.#parts?.mark?.(at, length),
      config,
    });
  }

  /** `state` names the exports of the mutable globals. Runs nothing of the module yet. Rejects with PluginBreach. */
  static async open(opened: OpenedModule): Promise<PluginInstance> {
    const instance = new PluginInstance(opened);
    instance.#plugin = await openEngine(opened.module, instance.host.functions);
    instance.#parts = partsOf((await instance.#plugin.getInstance()).exports, opened.state);
    return instance;
  }

  get state(): InstanceState {
    return this.#opened.state;
  }

  /** Resets fuel, stack and the refused-growth flag for the next run. */
  refill(fuelLimit: number): void {
    const { fuel, stack, refused } = this.#opened;
    this.#fuelLimit = fuelLimit;
    fuel.value = BigInt(fuelLimit);
    stack.value = stackBytes;
    refused.value = 0;
  }

  /** Fuel used since the last refill. */
  get fuelUsed(): number {
    return this.#fuelLimit - Number(this.#opened.fuel.value);
  }

  /** Returns the marks of what was written to the memory, and clears them. */
  takeWritten(): bigint {
    const { written } = this.#opened;
    const marks = BigInt(written.value);
    written.value = 0n;
    return marks;
  }

  /** Calls an export with an input, which the guest may write into. Throws PluginBreach where it traps or exceeds a limit. */
  run(name: string, input: Uint8Array = new Uint8Array()): void {
    const { ended } = this.#opened;
    ended.value = 0;
    // The engine copies a part of a larger buffer: then the two would differ.
    const own = input.length === input.buffer.byteLength ? input : new Uint8Array(input);
    this.host.begin(own);
    // The engine runs the guest before it returns; only its promise is late.
    this.engineError = this.#plugin?.call(name, own).then(ignore, (error: unknown) => error);
    // A guest that did not return to its entry has not ended well, whatever the reason.
    if (ended.value !== returnedZero) throw this.#breach();
  }

  /** Clears what outlives a call beside the state of the guest. */
  clearHost(): void {
    this.host.end();
    // Its blocks are let go at once: they hold what the call was about.
    void this.#plugin?.reset();
    // The engine's block 0 is a byte that it keeps from call to call.
    this.#opened.storeByte?.(0n, 0);
  }

  get #opened(): InstanceParts {
    if (this.#parts === undefined) throw new TypeError("PluginInstance: expected an open instance");
    return this.#parts;
  }

  #charge(amount: number): void {
    const { fuel } = this.#opened;
    const left = BigInt(fuel.value) - BigInt(amount);
    fuel.value = left;
    if (left < 0n) this.host.fail(this.#exhausted());
  }

  #exhausted(): PluginBreach {
    return new PluginBreach("fuel_exhausted", `expected an answer within ${this.#fuelLimit} units of fuel`);
  }

  /** The meter's globals distinguish its traps from the module's. */
  #breach(): PluginBreach {
    const { fuel, stack, refused, ended } = this.#opened;
    if (ended.value === returnedOther) {
      return new PluginBreach("plugin_error", "the plugin answered with an error code");
    }
    if (this.host.breach !== undefined) return this.host.breach;
    if (BigInt(fuel.value) < 0n) return this.#exhausted();
    if (Number(stack.value) < 0) {
      return new PluginBreach("call_depth", `expected calls within ${stackBytes} bytes of stack`);
    }
    if (refused.value !== 0) return new PluginBreach("memory_cap", "the plugin failed after its memory's cap was met");
    return new PluginBreach("trap", "the plugin trapped");
  }
}

/** The values of `ended`. */
const returnedZero = 1;
const returnedOther = 2;

/** The exports of a metered module. */
interface InstanceParts {
  readonly state: InstanceState;
  readonly fuel: WebAssembly.Global;
  readonly stack: WebAssembly.Global;
  readonly refused: WebAssembly.Global;
  readonly ended: WebAssembly.Global;
  readonly written: WebAssembly.Global;
  readonly mark: ((at: number, length: number) => unknown) | undefined;
  readonly storeByte: ((address: bigint, value: number) => unknown) | undefined;
}

function partsOf(exports: Readonly<Record<string, unknown>>, state: readonly string[]): InstanceParts {
  const global = (name: string): WebAssembly.Global => {
    const value = exports[name];
    if (!(value instanceof WebAssembly.Global)) throw new TypeError("PluginInstance: expected a metered module");
    return value;
  };
  const { memory, [hostExports.mark]: mark, [hostExports.storeByte]: storeByte } = exports;
  return {
    state: {
      memory: memory instanceof WebAssembly.Memory ? memory : undefined,
      globals: state.map(global),
    },
    fuel: global(hostExports.fuel),
    stack: global(hostExports.stack),
    refused: global(hostExports.refused),
    ended: global(hostExports.ended),
    written: global(hostExports.written),
    mark: typeof mark === "function" ? (mark as InstanceParts["mark"]) : undefined,
    storeByte: typeof storeByte === "function" ? (storeByte as InstanceParts["storeByte"]) : undefined,
  };
}

function ignore(): void {}
