import { type AbiName, abiModule, networkNames } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import type { HostFunctions } from "./engine.ts";
import { closedWasi } from "./wasi.ts";
import { closedNamespace } from "./wasm/meter.ts";

const maxOutput = 262_144;
const maxLogBytes = 4_096;
/** The host memory of one call: its output, and the buffers it is built from. */
const maxBytes = 1_048_576;
const maxBlocks = 4_096;
/** The price of a block beside its bytes: the engine makes two objects of it. */
const blockCharge = 256;
const maxKeyBytes = 1_024;
const maxVariables = 256;
const addressBits = 48;
const none = new Uint8Array();
const noInput: DataView = new DataView(none.buffer);
const decoder = new TextDecoder();

/** The engine's memory of the current call, in blocks. */
interface HostMemory {
  alloc(length: number): bigint;
  read(address: bigint): { bytes(): Uint8Array } | null;
  length(address: bigint): bigint;
}
/** Functions that are the engine's own: they cost and grow nothing beyond the call of them. */
type EngineName =
  | ("input_offset" | "length" | "length_unsafe" | "get_log_level")
  | ("load_u8" | "load_u64" | "store_u8" | "store_u64");

interface HostCallOptions {
  /** Deducts fuel from the current call; throws when none is left. */
  readonly charge: (fuel: number) => void;
  readonly guestMemory: () => WebAssembly.Memory | undefined;
  /** Marks a range of the guest's memory as written. */
  readonly mark: (at: number, length: number) => void;
  /** The values of `config_get`. */
  readonly config: Readonly<Record<string, string>>;
}

/**
 * The functions of the host that cost or grow, for one instance, in place of the engine's: each bounded and charged, and
 * nothing of one call is there in the next. Log and output of WASI are counted and discarded: a plugin sees secrets.
 */
export class HostCall {
  readonly functions: HostFunctions;
  /** The breach that ended the call, where a function of the host did. */
  breach: PluginBreach | undefined;
  readonly #charge: HostCallOptions["charge"];
  readonly #config: HostCallOptions["config"];
  readonly #variables = new Map<string, Uint8Array>();
  #input = noInput;
  #output: { readonly memory: HostMemory; readonly address: bigint; readonly length: number } | undefined;
  #error = 0n;
  #blocks = 0;
  #bytes = 0;
  #logged = 0;

  constructor({ charge, guestMemory, mark, config }: HostCallOptions) {
    this.#charge = charge;
    this.#config = config;
    const log = (memory: HostMemory, address: bigint): void => this.#log(Number(memory.length(address)));
    const abi = {
      // Modules read their input in words, one call each: the engine's own functions take twice as long.
      input_length: () => BigInt(this.#input.byteLength),
      input_load_u8: (_, address: bigint) => this.#input.getUint8(offsetOf(address)),
      input_load_u64: (_, address: bigint) => this.#input.getBigInt64(offsetOf(address), true),
      alloc: (memory, length: bigint) => this.#alloc(memory, Number(length)),
      // A block lives as long as its call: what is freed early would not be counted.
      free: () => undefined,
      output_set: (memory, address: bigint, length: bigint) => this.#setOutput(memory, address, Number(length)),
      error_set: (_, address: bigint) => {
        this.#error = address;
        this.#failed = true;
      },
      error_get: () => this.#error,
      config_get: (memory, key: bigint) => this.#getConfig(memory, key),
      var_get: (memory, key: bigint) => this.#getVariable(memory, key),
      var_set: (memory, key: bigint, value: bigint) => this.#setVariable(memory, key, value),
      log_trace: log,
      log_debug: log,
      log_info: log,
      log_warn: log,
      log_error: log,
    } satisfies Record<Exclude<AbiName, EngineName>, HostFunctions[string][string]>;
    const wasi = closedWasi({
      memory: guestMemory,
      mark,
      charge,
      log: (bytes) => this.#log(bytes),
      fail: (breach) => this.fail(breach),
    });
    const network = (): never => this.fail(new PluginBreach("host_call", "the plugin asked for the network"));
    this.functions = {
      [abiModule]: abi,
      [closedNamespace]: {
        ...Object.fromEntries(networkNames.map((name) => [name, network])),
        ...Object.fromEntries(
          Object.entries(wasi).map(([name, run]) => [
            name,
            (_: HostMemory, ...values: unknown[]): unknown => Reflect.apply(run, undefined, values),
          ]),
        ),
      },
    };
  }

  #failed = false;

  /** Begins a call with its input, which the guest may write to. */
  begin(input: Uint8Array): void {
    this.#input = new DataView(input.buffer, input.byteOffset, input.byteLength);
  }

  /** Ends the call: what a function of the host throws, the guest cannot catch. */
  fail(breach: PluginBreach): never {
    this.breach = breach;
    throw breach;
  }

  /** Returns the guest's output, a part of a block that nobody else has once the call ended. Throws PluginBreach where it reported an error or set no output. */
  answer(): Uint8Array {
    if (this.#failed) throw new PluginBreach("plugin_error", "the plugin reported an error of its own");
    if (this.#output === undefined) throw new PluginBreach("missing_output", "the plugin set no output");
    const { memory, address, length } = this.#output;
    const from = offsetOf(address);
    return (
      memory
        .read(address)
        ?.bytes()
        .subarray(from, from + length) ?? none
    );
  }

  /** Clears everything of this call. */
  end(): void {
    this.breach = undefined;
    this.#input = noInput;
    this.#output = undefined;
    this.#error = 0n;
    this.#failed = false;
    this.#blocks = 0;
    this.#bytes = 0;
    this.#logged = 0;
    if (this.#variables.size > 0) this.#variables.clear();
  }

  #alloc(memory: HostMemory, length: number): bigint {
    this.#charge(blockCharge + Math.max(0, Math.ceil(length / 8)));
    if (length < 0 || length > maxBytes - this.#bytes || this.#blocks >= maxBlocks) {
      this.fail(new PluginBreach("host_call", `expected \`alloc\` within ${maxBytes} bytes and ${maxBlocks} blocks`));
    }
    this.#blocks += 1;
    this.#bytes += length;
    return memory.alloc(length);
  }

  /** Returns a new block with a copy of the bytes. */
  #store(memory: HostMemory, bytes: Uint8Array): bigint {
    const address = this.#alloc(memory, bytes.length);
    memory.read(address)?.bytes().set(bytes);
    return address;
  }

  /** Keeps the place of the output: a plugin may set it before its bytes are stored. */
  #setOutput(memory: HostMemory, address: bigint, length: number): void {
    if (length > maxOutput) {
      this.fail(new PluginBreach("output_cap", `expected at most ${maxOutput} bytes of output, got more`));
    }
    if (length < 0 || offsetOf(address) + length > Number(memory.length(address))) {
      this.fail(new PluginBreach("host_call", "expected output inside a block of the host's memory"));
    }
    this.#charge(Math.ceil(length / 8));
    this.#output = { memory, address, length };
  }

  #log(bytes: number): void {
    this.#logged += bytes;
    if (this.#logged > maxLogBytes) {
      this.fail(new PluginBreach("log_cap", `expected at most ${maxLogBytes} bytes of log a call, got more`));
    }
  }

  #getConfig(memory: HostMemory, key: bigint): bigint {
    const name = this.#keyAt(memory, key);
    const value = name !== undefined && Object.hasOwn(this.#config, name) ? this.#config[name] : undefined;
    if (value === undefined) return 0n;
    this.#charge(Math.ceil(value.length / 8));
    return this.#store(memory, new TextEncoder().encode(value));
  }

  #getVariable(memory: HostMemory, key: bigint): bigint {
    const value = this.#variables.get(this.#keyAt(memory, key) ?? "");
    return value === undefined ? 0n : this.#store(memory, value);
  }

  /** A variable without a value is removed. What variables hold counts as host memory until the call ends. */
  #setVariable(memory: HostMemory, key: bigint, value: bigint): void {
    const name = this.#keyAt(memory, key);
    if (name === undefined) return;
    if (value === 0n) {
      this.#variables.delete(name);
      return;
    }
    const bytes = memory.read(value)?.bytes() ?? none;
    this.#charge(blockCharge + Math.ceil(bytes.length / 8));
    const isNew = !this.#variables.has(name);
    if ((isNew && this.#variables.size >= maxVariables) || bytes.length > maxBytes - this.#bytes) {
      const limit = `${maxVariables} variables and ${maxBytes} bytes of host memory`;
      this.fail(new PluginBreach("host_call", `expected \`var_set\` within ${limit}`));
    }
    this.#bytes += bytes.length;
    this.#variables.set(name, bytes.slice());
  }

  /** The text of a block; undefined for none, and for one that is no name of anything. */
  #keyAt(memory: HostMemory, address: bigint): string | undefined {
    const length = Number(memory.length(address));
    if (length === 0 || length > maxKeyBytes) return undefined;
    this.#charge(Math.ceil(length / 8));
    const bytes = memory.read(address)?.bytes();
    return bytes && decoder.decode(bytes);
  }
}

/** The offset within a block: the lower bits of an address. */
function offsetOf(address: bigint): number {
  return Number(BigInt.asUintN(addressBits, address));
}
