import { PluginFault } from "./fault.ts";

const maxBytes = 1_048_576;
const maxBlocks = 4_096;
/** No block starts at 0, which means "none". */
const firstOffset = 8;

/** Host memory for one call of a plugin, in blocks that start at multiples of 8. */
export class LentMemory {
  readonly bytes: Uint8Array = new Uint8Array(maxBytes);
  readonly view: DataView = new DataView(this.bytes.buffer);
  readonly #lengths = new Map<number, number>();
  #end = firstOffset;

  /** The offset of a new block, 0 for one of no length. */
  alloc(length: number): number {
    if (length < 0 || length > maxBytes - this.#end || this.#lengths.size === maxBlocks) {
      throw new PluginFault("host_call", `expected \`alloc\` within ${maxBytes} bytes and ${maxBlocks} blocks`);
    }
    if (length === 0) return 0;
    const offset = this.#end;
    this.#lengths.set(offset, length);
    this.#end = Math.min(maxBytes, offset + Math.ceil(length / 8) * 8);
    return offset;
  }

  /** The length of the block that begins at an offset, 0 where none does. */
  lengthOf(offset: number): number {
    return this.#lengths.get(offset) ?? 0;
  }

  holds(offset: number, length: number): boolean {
    return length === 0 || (offset >= firstOffset && length >= 0 && offset + length <= this.#end);
  }

  /** Returns the offset where that many bytes from it on are allocated. */
  check(offset: number, length: number): number {
    if (this.holds(offset, length)) return offset;
    throw new PluginFault("trap", "expected an offset inside the memory that was allocated");
  }

  copy(offset: number, length: number): Uint8Array {
    return length === 0 ? new Uint8Array() : this.bytes.slice(this.check(offset, length), offset + length);
  }

  /** The offset of a new block with these bytes. */
  store(bytes: Uint8Array): number {
    const offset = this.alloc(bytes.length);
    this.bytes.set(bytes, offset);
    return offset;
  }

  /** The text of the block that begins at an offset. */
  textAt(offset: number): string {
    return new TextDecoder().decode(this.copy(offset, this.lengthOf(offset)));
  }
}
