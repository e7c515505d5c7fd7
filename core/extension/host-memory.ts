import { PluginBreach } from "./breach.ts";

/** What one call may have the host hold for it: its output, and what it builds the output from. */
const mostBytes = 1_048_576;
const mostBlocks = 4_096;
/** What is held between calls; more is taken where a call asks for it. */
const usualBytes = 16_384;
/** No block begins at 0, which stands for "none". */
const firstOffset = 8;

/** Memory that the host lends a plugin for one call. Every access is checked; at the end of the call all of it is 0. */
export class HostMemory {
  #bytes = new Uint8Array(usualBytes);
  #view = new DataView(this.#bytes.buffer);
  readonly #lengths = new Map<number, number>();
  #used = firstOffset;

  alloc(length: number): number {
    const fits = length >= 0 && length <= mostBytes - this.#used && this.#lengths.size < mostBlocks;
    if (!fits)
      throw new PluginBreach("host_call", `expected \`alloc\` within ${mostBytes} bytes and ${mostBlocks} blocks`);
    if (length === 0) return 0;
    const offset = this.#used;
    this.#lengths.set(offset, length);
    // Blocks begin at multiples of 8.
    this.#used = Math.min(mostBytes, offset + Math.ceil(length / 8) * 8);
    if (this.#used > this.#bytes.length) this.#grow();
    return offset;
  }

  /** The length of the block that begins at an offset, 0 where none does. */
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

  /** A copy of a span. */
  copy(offset: number, length: number): Uint8Array {
    if (length === 0) return new Uint8Array();
    return this.#bytes.slice(this.#check(offset, length), offset + length);
  }

  /** Forgets everything: nothing of this call is left for the next. */
  clear(): void {
    if (this.#bytes.length > usualBytes) this.#replace(new Uint8Array(usualBytes));
    else this.#bytes.fill(0, 0, this.#used);
    if (this.#lengths.size > 0) this.#lengths.clear();
    this.#used = firstOffset;
  }

  #grow(): void {
    const grown = new Uint8Array(Math.min(mostBytes, Math.max(this.#used, this.#bytes.length * 2)));
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
