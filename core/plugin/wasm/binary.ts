import { isUtf8 } from "node:buffer";

const maxName = 256;

/** Reads a range of a WASM binary. Anything outside the range or the encoding throws ModuleFault with the offset. */
export class BinaryReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get at(): number {
    return this.#at;
  }

  get done(): boolean {
    return this.#at === this.#end;
  }

  byte(): number {
    const byte = this.#at < this.#end ? this.#bytes[this.#at] : undefined;
    if (byte === undefined) throw this.fault("more bytes", "the end");
    this.#at += 1;
    return byte;
  }

  /** An unsigned 32-bit LEB128 number: at most five bytes, and no bit beyond the thirty-second. */
  u32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      if (shift === 28 && byte > 0x0f) break;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw this.fault("a number of 32 bits", "a longer one");
  }

  /** A signed LEB128 number of 32, 33 or 64 bits, as a number: exact only up to 33 bits. */
  signed(bits: 32 | 33 | 64): number {
    const last = Math.ceil(bits / 7) - 1;
    let value = 0;
    for (let index = 0; index <= last; index++) {
      const byte = this.byte();
      if (index === last && !isSignExtension(byte, bits - 7 * last)) break;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return (byte & 0x40) === 0 ? value : value - 2 ** (7 * (index + 1));
    }
    throw this.fault(`a signed number of ${bits} bits`, "a longer one");
  }

  /** The count of the items that follow, each at least one byte long. */
  count(what: string, most: number): number {
    const count = this.u32();
    if (count > most) throw this.fault(`at most ${most} ${what}`, String(count));
    if (count > this.#end - this.#at) throw this.fault(`${count} ${what}`, "the end");
    return count;
  }

  name(): string {
    const bytes = this.take(this.count("bytes in a name", maxName));
    if (!isUtf8(bytes)) throw this.fault("a name in UTF-8", "other bytes");
    return new TextDecoder().decode(bytes);
  }

  /** The next bytes, not copied. */
  take(length: number): Uint8Array {
    if (length > this.#end - this.#at) throw this.fault(`${length} bytes`, "the end");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Returns a reader of the next `length` bytes. */
  span(length: number): BinaryReader {
    const start = this.#at;
    this.take(length);
    return new BinaryReader(this.#bytes, start, start + length);
  }

  /** The bytes read since an offset, not copied. */
  since(offset: number): Uint8Array {
    return this.#bytes.subarray(offset, this.#at);
  }

  expect(byte: number, what: string): void {
    const got = this.byte();
    if (got !== byte) throw this.fault(what, hex(got));
  }

  expectEnd(what: string): void {
    if (!this.done) throw this.fault(`the end of ${what}`, "more bytes");
  }

  fault(expected: string, got: string): ModuleFault {
    return new ModuleFault(`at byte ${this.#at}: expected ${expected}, got ${got}`);
  }
}

/** Returns true where the last byte of a signed number repeats its sign in all unused bits. */
function isSignExtension(byte: number, bits: number): boolean {
  if (byte > 0x7f) return false;
  const spare = byte >> (bits - 1);
  return spare === 0 || spare === 0x7f >> (bits - 1);
}

export function hex(byte: number): string {
  return `0x${byte.toString(16).padStart(2, "0")}`;
}

/** Writes a WASM binary into a growing buffer. */
export class BinaryWriter {
  #bytes = new Uint8Array(1_024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The written bytes; a view, valid until the next write. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  write(bytes: Uint8Array | readonly number[]): void {
    const needed = this.#length + bytes.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = needed;
  }

  u32(value: number): void {
    this.write(unsigned(value));
  }

  /** A signed number of 32 bits. */
  signed32(value: number): void {
    let rest = value;
    // The last byte's sign stands for all bits beyond it.
    for (; rest < -0x40 || rest > 0x3f; rest >>= 7) this.write([(rest & 0x7f) | 0x80]);
    this.write([rest & 0x7f]);
  }

  /** Reserves a signed constant to be filled in later; returns its position. */
  reserve(): number {
    this.write(padded(0));
    return this.#length - padding;
  }

  /** Fills in a reserved constant; below 2^31. */
  fill(at: number, value: number): void {
    this.#bytes.set(padded(value), at);
  }

  /** Writes the length of the bytes, then the bytes. */
  sized(bytes: Uint8Array): void {
    this.u32(bytes.length);
    this.write(bytes);
  }

  name(text: string): void {
    this.sized(new TextEncoder().encode(text));
  }

  section(id: number, content: BinaryWriter): void {
    this.write([id]);
    this.sized(content.bytes);
  }
}

const padding = 5;

function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return bytes;
}

/** Encodes a non-negative number of up to 31 bits as five bytes of signed LEB128. */
function padded(value: number): number[] {
  return Array.from({ length: padding }, (_, index) => {
    const low = Math.floor(value / 2 ** (7 * index)) & 0x7f;
    return index === padding - 1 ? low : low | 0x80;
  });
}

/** A fault of a module, worded for its author. Nothing of such a module is used. */
export class ModuleFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ModuleFault";
  }
}

/** Throws the fault unless a number read from a module is within its bound. */
export function checkBound(what: string, value: number, most: number): number {
  if (value > most) throw new ModuleFault(`expected at most ${most} ${what}, got ${value}`);
  return value;
}
