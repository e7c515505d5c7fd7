import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { parseStrictJson } from "../../action/strict-json.ts";
import type { InstanceState } from "../../plugin/snapshot.ts";
import { ModuleFault } from "../../plugin/wasm/binary.ts";
import { hostExports, stackBytes } from "../../plugin/wasm/meter.ts";
import { EngineError } from "../engine-fault.ts";
import { type OpaFunction, opaImports, opaModule, versionGlobal } from "./opa-abi.ts";

const maxAnswer = 65_536;
const tableBounds = { depth: 2, nodes: 4_096, stringLength: 512, reader: "exact" } as const;

/** An instance of a metered module of OPA. What fails in it throws EngineError, without a word of the module's own. */
export class RegoInstance {
  readonly #exports: WebAssembly.Instance["exports"];
  readonly state: InstanceState & { readonly memory: WebAssembly.Memory };
  #fuelLimit = 0;
  #aborted = false;

  /** `state` names the exports of the mutable globals. Throws RuntimeError of the engine for a segment out of bounds. */
  constructor(module: WebAssembly.Module, state: readonly string[]) {
    const abort = (): never => {
      this.#aborted = true;
      throw new EngineError("evaluation", "the policies aborted");
    };
    const functions = opaImports.map((name) => [name, name === "opa_println" ? () => undefined : abort] as const);
    this.#exports = new WebAssembly.Instance(module, { [opaModule]: Object.fromEntries(functions) }).exports;
    const { [hostExports.memory]: memory } = this.#exports;
    if (!(memory instanceof WebAssembly.Memory)) throw new ModuleFault("expected a module with a memory");
    this.state = { memory, globals: state.map((name) => this.#global(name)) };
  }

  get memory(): WebAssembly.Memory {
    return this.state.memory;
  }

  get version(): number {
    return Number(this.#global(versionGlobal).value);
  }

  /** Sets fuel and stack for what follows. */
  refill(fuelLimit: number): void {
    this.#fuelLimit = fuelLimit;
    this.#aborted = false;
    this.#global(hostExports.fuel).value = BigInt(fuelLimit);
    this.#global(hostExports.stack).value = stackBytes;
    this.#global(hostExports.refused).value = 0;
  }

  /** Enlarges the memory, not the size of it that the module sees. */
  grow(pages: number): void {
    this.memory.grow(Math.max(0, pages));
  }

  /** Runs a start function of the module. */
  initialize(name: string): void {
    this.#run(name, []);
  }

  /** Calls an export with the fuel that is left. Returns an address, a number, or 0 for nothing. */
  call(name: OpaFunction, ...values: readonly number[]): number {
    return Number(this.#run(name, values) ?? 0) >>> 0;
  }

  /** Hands over JSON in UTF-8. Returns the address of its value; 0 where the module cannot read it. */
  parse(json: Uint8Array): number {
    const address = this.call("opa_malloc", json.length);
    if (address === 0 || address + json.length > this.memory.buffer.byteLength)
      throw new EngineError("evaluation", "the module gave no memory for its input");
    new Uint8Array(this.memory.buffer).set(json, address);
    return this.call("opa_json_parse", address, json.length);
  }

  /** Returns a copy of the JSON text of a value. */
  dump(value: number): Uint8Array {
    const start = value === 0 ? 0 : this.call("opa_json_dump", value);
    const text = new Uint8Array(this.memory.buffer).subarray(start, start + maxAnswer + 1);
    const length = start === 0 ? -1 : text.indexOf(0);
    if (length === -1) throw new EngineError("answer", `expected an answer of at most ${maxAnswer} bytes`);
    return text.slice(0, length);
  }

  /** Returns the object that an export without parameters answers with. Throws ModuleFault where it is none. */
  table(name: "builtins" | "entrypoints"): JsonObject {
    try {
      const value = parseStrictJson(this.dump(this.call(name)), tableBounds);
      if (isJsonObject(value)) return value;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
    }
    throw new ModuleFault(`expected \`${name}\` to answer with an object`);
  }

  #run(name: string, values: readonly number[]): unknown {
    const run = this.#exports[name];
    if (typeof run !== "function") throw new TypeError("RegoInstance: expected a metered module of OPA");
    try {
      return run(...values);
    } catch {
      throw this.#failure();
    }
  }

  /** The meter's globals distinguish its traps from the module's. */
  #failure(): EngineError {
    return new EngineError("evaluation", this.#aborted ? "the policies aborted" : this.#trapReason());
  }

  #trapReason(): string {
    const numberOf = (name: string): number => Number(this.#global(name).value);
    if (numberOf(hostExports.fuel) < 0) return `expected an answer within ${this.#fuelLimit} units of fuel`;
    if (numberOf(hostExports.stack) < 0) return `expected calls within ${stackBytes} bytes of stack`;
    if (numberOf(hostExports.refused) !== 0) return "expected an evaluation within the memory's cap";
    return "the policies trapped";
  }

  #global(name: string): WebAssembly.Global {
    const value = this.#exports[name];
    if (!(value instanceof WebAssembly.Global)) throw new TypeError("RegoInstance: expected a metered module of OPA");
    return value;
  }
}
