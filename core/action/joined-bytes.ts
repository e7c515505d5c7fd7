/** Bytes for the first of which there is memory, where nobody knows how many come. */
const usualMemory = 65_536;
const growth = 4;

/**
 * Bytes that come in pieces, laid one behind another as they come: to join megabytes once all are there would hold everybody up, for
 * fresh memory takes longer to touch than to fill. A single piece is not copied.
 */
export class JoinedBytes {
  readonly #expected: number;
  #bytes: Buffer = Buffer.alloc(0);
  /** False while `#bytes` is the first piece. */
  #isOwn = false;
  #length = 0;

  /** `expected`: bytes that come altogether, 0 where that is not known. There is memory for so many from the second piece on. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  add(piece: Uint8Array): this {
    const length = this.#length + piece.length;
    if (this.#length === 0) this.#bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    else {
      if (length > this.#bytes.length || !this.#isOwn) this.#move(length);
      this.#bytes.set(piece, this.#length);
    }
    this.#length = length;
    return this;
  }

  /** The bytes so far. */
  get bytes(): Buffer {
    return this.#isOwn ? this.#bytes.subarray(0, this.#length) : this.#bytes;
  }

  #move(length: number): void {
    const grown = this.#isOwn ? this.#length * growth : usualMemory;
    const memory = Buffer.allocUnsafeSlow(Math.max(length, this.#expected, grown));
    memory.set(this.bytes);
    this.#bytes = memory;
    this.#isOwn = true;
  }
}
