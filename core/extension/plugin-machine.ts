import { entryPoint } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { PluginInstance } from "./plugin-instance.ts";
import { restoreSnapshot, type Snapshot } from "./snapshot.ts";

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
