import type { JsonObject } from "../contract/index.ts";
import { PluginFault } from "./fault.ts";
import { LentMemory } from "./memory.ts";
import { closedWasi } from "./wasi.ts";

const maxOutput = 262_144;
const maxLogBytes = 4_096;

/** The module that a plugin's imports name. */
export const abiModule = "extism:host/env";

/** Receives the plugin's log. The gateway discards it. */
export type Log = (level: "debug" | "info" | "warn" | "error", text: string) => void;

type HostFunctions = Readonly<Record<string, (...values: never[]) => unknown>>;

/** The host's side of the ABI for one call: the functions to import, and the output. */
export class Host {
  readonly functions: HostFunctions;
  /** WASI's, by its own module name. What is written to a stream is logged at the level `info`. */
  readonly wasi: HostFunctions;
  /** The memory that the instance exports, once there is one. */
  guestMemory: WebAssembly.Memory | undefined;
  readonly #memory = new LentMemory();
  readonly #input: Uint8Array;
  readonly #log: Log;
  readonly #settings: JsonObject;
  readonly #variables = new Map<string, Uint8Array>();
  #inputOffset: number | undefined;
  #output: readonly [offset: number, length: number] | undefined;
  #failed = false;
  #logged = 0;

  constructor(input: Uint8Array, log: Log, settings: JsonObject = {}) {
    this.#input = input;
    this.#settings = settings;
    this.#log = log;
    const memory = this.#memory;
    const { view } = memory;
    const inputView = new DataView(input.buffer, input.byteOffset, input.byteLength);
    this.functions = {
      input_length: () => BigInt(input.length),
      input_offset: () => {
        this.#inputOffset ??= memory.store(input);
        return BigInt(this.#inputOffset);
      },
      input_load_u8: (offset: bigint) => input[this.#inInput(offset, 1)],
      input_load_u64: (offset: bigint) => inputView.getBigInt64(this.#inInput(offset, 8), true),
      output_set: (offset: bigint, length: bigint) => this.#setOutput(Number(offset), Number(length)),
      error_set: () => {
        this.#failed = true;
      },
      error_get: () => 0n,
      alloc: (length: bigint) => BigInt(memory.alloc(Number(length))),
      free: () => undefined,
      length: (offset: bigint) => BigInt(memory.lengthOf(Number(offset))),
      length_unsafe: (offset: bigint) => BigInt(memory.lengthOf(Number(offset))),
      load_u8: (offset: bigint) => view.getUint8(memory.check(Number(offset), 1)),
      load_u64: (offset: bigint) => view.getBigInt64(memory.check(Number(offset), 8), true),
      store_u8: (offset: bigint, value: number) => view.setUint8(memory.check(Number(offset), 1), value),
      store_u64: (offset: bigint, value: bigint) => view.setBigInt64(memory.check(Number(offset), 8), value, true),
      config_get: (key: bigint) => this.#lend(this.#setting(memory.textAt(Number(key)))),
      var_get: (key: bigint) => this.#lend(this.#variables.get(memory.textAt(Number(key)))),
      var_set: (key: bigint, value: bigint) => this.#setVariable(memory.textAt(Number(key)), Number(value)),
      log_trace: (offset: bigint) => this.#say("debug", Number(offset)),
      log_debug: (offset: bigint) => this.#say("debug", Number(offset)),
      log_info: (offset: bigint) => this.#say("info", Number(offset)),
      log_warn: (offset: bigint) => this.#say("warn", Number(offset)),
      log_error: (offset: bigint) => this.#say("error", Number(offset)),
      get_log_level: () => 0,
    };
    this.wasi = closedWasi({
      memory: () => this.guestMemory,
      write: (length, bytes) => this.#show("info", length, bytes),
    });
  }

  /** Throws PluginFault where the plugin reported an error or set no output. */
  answer(): Uint8Array {
    if (this.#failed) throw new PluginFault("plugin_error", "the plugin reported an error of its own");
    if (this.#output === undefined) throw new PluginFault("missing_output", "the plugin set no output");
    return this.#memory.copy(...this.#output);
  }

  #setting(name: string): Uint8Array | undefined {
    const value = Object.hasOwn(this.#settings, name) ? this.#settings[name] : undefined;
    if (value === undefined) return undefined;
    return new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
  }

  #setVariable(name: string, value: number): void {
    if (value === 0) this.#variables.delete(name);
    else this.#variables.set(name, this.#memory.copy(value, this.#memory.lengthOf(value)));
  }

  /** The offset of a block with these bytes, 0 for none. */
  #lend(bytes: Uint8Array | undefined): bigint {
    return bytes === undefined ? 0n : BigInt(this.#memory.store(bytes));
  }

  #inInput(offset: bigint, length: number): number {
    if (offset >= 0n && Number(offset) + length <= this.#input.length) return Number(offset);
    throw new PluginFault("trap", "expected an offset inside the input");
  }

  #setOutput(offset: number, length: number): void {
    if (length > maxOutput) {
      throw new PluginFault("output_cap", `expected at most ${maxOutput} bytes of output, got more`);
    }
    if (length < 0 || !this.#memory.holds(offset, length)) {
      throw new PluginFault("host_call", "expected output inside the memory that was allocated");
    }
    this.#output = [offset, length];
  }

  #say(level: Parameters<Log>[0], offset: number): void {
    const length = this.#memory.lengthOf(offset);
    this.#show(level, length, this.#memory.copy(offset, length));
  }

  /** Logs and streams are bounded together. */
  #show(level: Parameters<Log>[0], length: number, bytes: Uint8Array): void {
    this.#logged += length;
    if (this.#logged > maxLogBytes) {
      throw new PluginFault("log_cap", `expected at most ${maxLogBytes} bytes of log a call, got more`);
    }
    this.#log(level, new TextDecoder().decode(bytes));
  }
}
