import type { AbiName } from "./abi.ts";
import { PluginBreach } from "./breach.ts";

const maxOutput = 262_144;
const maxLogBytes = 4_096;
const none = new Uint8Array();

/** Deducts fuel from the current call; throws when none is left. */
type Charge = (fuel: number) => void;

/**
 * The host's side of the ABI for one instance: the guest's input, output and host memory. Every offset from the guest
 * is checked.
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

  /** Returns a copy of the guest's output. Throws PluginBreach where it reported an error or set no output. */
  answer(): Uint8Array {
    if (this.#failed) throw new PluginBreach("plugin_error", "the plugin reported an error of its own");
    if (this.#output === undefined) throw new PluginBreach("missing_output", "the plugin set no output");
    return this.#output;
  }

  /** Clears everything of this call. */
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
    if (length > maxOutput) {
      throw new PluginBreach("output_cap", `expected at most ${maxOutput} bytes of output, got more`);
    }
    this.#charge(Math.max(0, Math.ceil(length / 8)));
    this.#output = this.#memory.copy(offset, length);
  }

  /** Counts logged bytes and discards them: a plugin sees secrets, so its log must not reach ours. */
  #log(offset: number): void {
    this.#logged += this.#memory.lengthOf(offset);
    if (this.#logged > maxLogBytes) {
      throw new PluginBreach("log_cap", `expected at most ${maxLogBytes} bytes of log a call, got more`);
    }
  }
}

/** The host memory of one call: its output, and the buffers it is built from. */
const maxBytes = 1_048_576;
const maxBlocks = 4_096;
/** The memory kept between calls; a call that needs more makes it grow. */
const usualBytes = 16_384;
/** No block starts at 0, which means "none". */
const firstOffset = 8;

/** Host memory for one call of a plugin. Every access is checked; all of it is zeroed after the call. */
class HostMemory {
  #bytes = new Uint8Array(usualBytes);
  #view = new DataView(this.#bytes.buffer);
  readonly #lengths = new Map<number, number>();
  #used = firstOffset;

  alloc(length: number): number {
    const fits = length >= 0 && length <= maxBytes - this.#used && this.#lengths.size < maxBlocks;
    if (!fits)
      throw new PluginBreach("host_call", `expected \`alloc\` within ${maxBytes} bytes and ${maxBlocks} blocks`);
    if (length === 0) return 0;
    const offset = this.#used;
    this.#lengths.set(offset, length);
    // Blocks start at multiples of 8.
    this.#used = Math.min(maxBytes, offset + Math.ceil(length / 8) * 8);
    if (this.#used > this.#bytes.length) this.#grow();
    return offset;
  }

  /** The length of the block at an offset, or 0. */
  lengthOf(offset: number): number {
    return this.#lengths.get(offset) ?? 0;
  }

  loadU8(offset: number): number {
    return this.#bytes[this.#check(offset, 1)] ?? 0;
  }

  loadU64(offset: number): bigint {
    return this.#view.getBigUint64(this.#check(offset, 8), true);
  }

  storeU8(offset: number, value: number): void {
    this.#bytes[this.#check(offset, 1)] = value;
  }

  storeU64(offset: number, value: bigint): void {
    this.#view.setBigUint64(this.#check(offset, 8), value, true);
  }

  /** Returns a copy of a range. */
  copy(offset: number, length: number): Uint8Array {
    if (length === 0) return new Uint8Array();
    return this.#bytes.slice(this.#check(offset, length), offset + length);
  }

  /** Zeroes everything, so that nothing of this call remains for the next. */
  clear(): void {
    if (this.#bytes.length > usualBytes) this.#replace(new Uint8Array(usualBytes));
    else this.#bytes.fill(0, 0, this.#used);
    if (this.#lengths.size > 0) this.#lengths.clear();
    this.#used = firstOffset;
  }

  #grow(): void {
    const grown = new Uint8Array(Math.min(maxBytes, Math.max(this.#used, this.#bytes.length * 2)));
    grown.set(this.#bytes);
    this.#replace(grown);
  }

  #replace(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }

  #check(offset: number, length: number): number {
    if (offset >= firstOffset && length >= 0 && offset + length <= this.#used) return offset;
    throw new PluginBreach("host_call", "expected an offset inside the memory that was allocated");
  }
}
