import { setImmediate as nextTurn } from "node:timers/promises";
import { escapeHidden } from "../../action/visible-text.ts";
import { restoreSnapshot, type Snapshot, takeSnapshot } from "../../plugin/snapshot.ts";
import { ModuleFault } from "../../plugin/wasm/binary.ts";
import { type MeteredModule, meterModule } from "../../plugin/wasm/meter.ts";
import { pageBytes } from "../../plugin/wasm/module.ts";
import { parseModule } from "../../plugin/wasm/module-parser.ts";
import { EngineError } from "../engine-fault.ts";
import { opaForm } from "./opa-abi.ts";
import { RegoInstance } from "./rego-instance.ts";

/** Pages of 64 KiB that a module and its data may fill. */
const memoryPages = 64;
/** Fuel for reading the data when a folder is loaded. */
const loadFuel = 200_000_000;
/** Fuel of one evaluation, which holds the thread. */
const callFuel = 20_000_000;
const maxInput = 1_048_576;

export interface RegoProgram {
  readonly module: Uint8Array;
  /** JSON in UTF-8. */
  readonly data: Uint8Array;
  readonly entrypoint: string;
}

/** The addresses of what each evaluation needs. */
interface Prepared {
  readonly data: number;
  readonly entrypoint: number;
}

/** Runs a module of OPA, one evaluation at a time. Each starts from the same memory, whatever the previous one did. */
export class RegoMachine {
  readonly #module: WebAssembly.Module;
  readonly #metered: MeteredModule;
  readonly #prepared: Prepared;
  readonly #snapshot: Snapshot;
  #instance: RegoInstance | undefined;

  private constructor(module: WebAssembly.Module, metered: MeteredModule, instance: RegoInstance, prepared: Prepared) {
    this.#module = module;
    this.#metered = metered;
    this.#prepared = prepared;
    const snapshot = takeSnapshot(instance.state);
    // A private copy: copying from shared memory is slow.
    this.#snapshot = { ...snapshot, bytes: snapshot.bytes.slice() };
    this.#instance = instance;
  }

  /** Rejects with ModuleFault for a module that cannot be run, lacks the entrypoint, or asks the host for a function. */
  static async open({ module: bytes, data, entrypoint }: RegoProgram): Promise<RegoMachine> {
    // Checks our own limits first: an oversized module never reaches the engine.
    const metered = meterModule(parseModule(bytes, opaForm), memoryPages);
    // A reload happens while requests are served: yield to them between steps.
    await nextTurn();
    // The engine validates the original module, so that the module cannot name what metering adds.
    if (!WebAssembly.validate(bytes)) throw new ModuleFault("expected a valid module: the engine refuses it");
    await nextTurn();
    try {
      const module = await WebAssembly.compile(metered.bytes);
      const instance = new RegoInstance(module, metered.state);
      instance.refill(loadFuel);
      for (const name of metered.initializers) instance.initialize(name);
      const prepared = prepare(instance, data, entrypoint);
      instance.grow(Math.min(metered.growthPages, metered.maxPages - instance.memory.buffer.byteLength / pageBytes));
      return new RegoMachine(module, metered, instance, prepared);
    } catch (error) {
      if (error instanceof EngineError) throw new ModuleFault(`the module fails while it is loaded: ${error.message}`);
      if (error instanceof WebAssembly.CompileError)
        throw new ModuleFault("expected a valid module: the engine refuses it");
      if (error instanceof WebAssembly.RuntimeError)
        throw new ModuleFault("the module has a segment outside its table");
      throw error;
    }
  }

  /** Evaluates the entrypoint. Returns the JSON text of OPA's result set. Throws EngineError. */
  evaluate(input: Uint8Array): Uint8Array {
    if (input.length > maxInput) throw new EngineError("input", `expected an action of at most ${maxInput} bytes`);
    const instance = this.#instance ?? this.#open();
    // An instance is used again only after its memory was restored.
    this.#instance = undefined;
    instance.refill(callFuel);
    try {
      return this.#run(instance, input);
    } finally {
      // Memory cannot shrink: one that has grown is let go.
      if (instance.memory.buffer.byteLength === this.#snapshot.memoryBytes) this.#restore(instance);
    }
  }

  #run(instance: RegoInstance, input: Uint8Array): Uint8Array {
    const value = instance.parse(input);
    // An input that is none would be undefined to the policies, and what they forbid by its members would pass.
    if (value === 0) throw new EngineError("input", "expected an action that the module can read as JSON");
    const context = instance.call("opa_eval_ctx_new");
    instance.call("opa_eval_ctx_set_input", context, value);
    instance.call("opa_eval_ctx_set_data", context, this.#prepared.data);
    instance.call("opa_eval_ctx_set_entrypoint", context, this.#prepared.entrypoint);
    if (instance.call("eval", context) !== 0) throw new EngineError("evaluation", "the policies ended with an error");
    return instance.dump(instance.call("opa_eval_ctx_get_result", context));
  }

  #open(): RegoInstance {
    const instance = new RegoInstance(this.#module, this.#metered.state);
    instance.grow((this.#snapshot.memoryBytes - instance.memory.buffer.byteLength) / pageBytes);
    this.#restore(instance);
    return instance;
  }

  #restore(instance: RegoInstance): void {
    restoreSnapshot(this.#snapshot, instance.state);
    this.#instance = instance;
  }
}

const maxNamed = 16;

function prepare(instance: RegoInstance, data: Uint8Array, entrypoint: string): Prepared {
  const version = instance.version;
  if (version !== 1) throw new ModuleFault(`expected version 1 of OPA's interface, got ${version}`);
  const builtins = Object.keys(instance.table("builtins"));
  if (builtins.length > 0) {
    const named = builtins.slice(0, maxNamed).map((name) => `\`${name.slice(0, 64)}\``);
    throw new ModuleFault(
      `expected no built-in functions of the host, got ${named.join(", ")}: use those of OPA's own`,
    );
  }
  const entrypoints = instance.table("entrypoints");
  const index = Object.hasOwn(entrypoints, entrypoint) ? entrypoints[entrypoint] : undefined;
  if (typeof index !== "number") {
    throw new ModuleFault(`expected the entrypoint \`${entrypoint}\`, got ${namesOf(Object.keys(entrypoints))}`);
  }
  const value = instance.parse(data);
  if (value === 0) throw new ModuleFault("expected `data.json` to be JSON that the module can read");
  return { data: value, entrypoint: index };
}

/** Names that a module gives, fit for a terminal. */
function namesOf(names: readonly string[]): string {
  const quoted = names.slice(0, maxNamed).map((name) => `\`${escapeHidden(name.slice(0, 64))}\``);
  return quoted.join(", ") || "none";
}
