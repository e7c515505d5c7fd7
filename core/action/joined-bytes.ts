/**
 * Bytes that come in pieces. Those of which the number is known are laid one behind another as they come, others are kept as they
 * are: to join megabytes once all are there would hold everybody up, for fresh memory takes longer to touch than to fill.
 */
export class JoinedBytes {
  readonly pieces: Buffer[] = [];
  readonly #expected: number;
  #length = 0;
  /** Memory for all, once a second piece has come. */
  #whole: Buffer | undefined;

  /** `expected`: bytes that come altogether, 0 where that is not known. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  get length(): number {
    return this.#length;
  }

  /** All of them, in one. */
  get bytes(): Buffer {
    return this.pieces.length === 1 ? (this.pieces[0] as Buffer) : Buffer.concat(this.pieces, this.#length);
  }

  add(piece: Uint8Array): this {
    if (piece.length === 0) return this;
    const length = this.#length + piece.length;
    if (this.#length === 0 || length > this.#expected) {
      this.pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    } else {
      this.#whole ??= this.#lay();
      this.#whole.set(piece, this.#length);
      this.pieces[0] = this.#whole.subarray(0, length);
    }
    this.#length = length;
    return this;
  }

  /** Lays the first piece into memory for all. */
  #lay(): Buffer {
    const whole = Buffer.allocUnsafeSlow(this.#expected);
    whole.set(this.pieces[0] as Buffer);
    return whole;
  }
}
