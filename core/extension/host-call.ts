import type { AbiName } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { HostMemory } from "./host-memory.ts";

export const largestOutput = 262_144;
const mostLogBytes = 4_096;
const none = new Uint8Array();

/** Takes fuel from the call under way; throws where none is left. */
export type Charge = (fuel: number) => void;

/**
 * The host's side of the ABI for one instance: what the guest reads as input, writes as output and borrows between.
 * Offsets come as 64-bit numbers from the guest; none is believed.
 */
export class HostCall {
  readonly functions: Readonly<Record<AbiName, (...values: never[]) => unknown>>;
  readonly #memory = new HostMemory();
  readonly #charge: Charge;
  #input: Uint8Array = none;
  #view: DataView = new DataView(none.buffer);
  #output: Uint8Array | undefined;
  #failed = false;
  #logged = 0;

  constructor(charge: Charge) {
    this.#charge = charge;
    const memory = this.#memory;
    const log = (offset: bigint): void => this.#log(Number(offset));
    this.functions = {
      input_length: () => BigInt(this.#input.length),
      input_load_u8: (offset: bigint) => this.#input[this.#checkInput(Number(offset), 1)],
      input_load_u64: (offset: bigint) => this.#view.getBigInt64(this.#checkInput(Number(offset), 8), true),
      output_set: (offset: bigint, length: bigint) => this.#setOutput(Number(offset), Number(length)),
      error_set: () => {
        this.#failed = true;
      },
      alloc: (length: bigint) => BigInt(this.#alloc(Number(length))),
      free: () => undefined,
      length: (offset: bigint) => BigInt(memory.lengthOf(Number(offset))),
      load_u8: (offset: bigint) => memory.loadU8(Number(offset)),
      load_u64: (offset: bigint) => memory.loadU64(Number(offset)),
      store_u8: (offset: bigint, value: number) => memory.storeU8(Number(offset), value),
      store_u64: (offset: bigint, value: bigint) => memory.storeU64(Number(offset), BigInt.asUintN(64, value)),
      log_debug: log,
      log_info: log,
      log_warn: log,
      log_error: log,
    };
  }

  begin(input: Uint8Array): void {
    this.#input = input;
    this.#view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  }

  /** What the guest answered, its own copy; a PluginBreach where it gave up or said nothing. */
  answer(): Uint8Array {
    if (this.#failed) throw new PluginBreach("plugin_error", "the plugin reported an error of its own");
    if (this.#output === undefined) throw new PluginBreach("missing_output", "the plugin set no output");
    return this.#output;
  }

  /** Forgets the call. */
  end(): void {
    this.begin(none);
    this.#output = undefined;
    this.#failed = false;
    this.#logged = 0;
    this.#memory.clear();
  }

  #checkInput(offset: number, length: number): number {
    if (offset >= 0 && offset + length <= this.#input.length) return offset;
    throw new PluginBreach("host_call", "expected an offset inside the input");
  }

  #alloc(length: number): number {
    this.#charge(Math.max(0, Math.ceil(length / 8)));
    return this.#memory.alloc(length);
  }

  #setOutput(offset: number, length: number): void {
    if (length > largestOutput) {
      throw new PluginBreach("output_cap", `expected at most ${largestOutput} bytes of output, got more`);
    }
    this.#charge(Math.max(0, Math.ceil(length / 8)));
    this.#output = this.#memory.copy(offset, length);
  }

  /** Counted, and not kept: a plugin sees secrets, so nothing it logs may reach a log. */
  #log(offset: number): void {
    this.#logged += this.#memory.lengthOf(offset);
    if (this.#logged > mostLogBytes) {
      throw new PluginBreach("log_cap", `expected at most ${mostLogBytes} bytes of log a call, got more`);
    }
  }
}
