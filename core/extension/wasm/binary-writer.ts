/** Bytes of a WASM binary that grow as they are written. */
export class BinaryWriter {
  #bytes = new Uint8Array(1_024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What was written; a view, good until the next write. */
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

  /** A signed constant whose value is known later; answers with its place. */
  reserve(): number {
    this.write(padded(0));
    return this.#length - padding;
  }

  /** Fills in what was reserved; below 2^31. */
  fill(at: number, value: number): void {
    this.#bytes.set(padded(value), at);
  }

  /** The length of the bytes, then the bytes. */
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

/** A number of up to 31 bits, not negative, as five bytes of signed LEB128. */
function padded(value: number): number[] {
  return Array.from({ length: padding }, (_, index) => {
    const low = Math.floor(value / 2 ** (7 * index)) & 0x7f;
    return index === padding - 1 ? low : low | 0x80;
  });
}
