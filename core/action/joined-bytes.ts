/** Bytes of a piece from which on it is kept as it is. Shorter ones share blocks, or each of them would take more memory than its bytes. */
const minKept = 16_384;
const blockBytes = 65_536;

/**
 * Bytes that come in pieces. Those of which the number is known are laid one behind another as they come, others are kept as they
 * are: to join megabytes once all are there would hold everybody up, for fresh memory takes longer to touch than to fill.
 */
export class JoinedBytes {
  readonly pieces: Buffer[] = [];
  readonly #expected: number;
  #length = 0;
  /** Memory of the last piece where that goes on, and how much of it is filled. */
  #block: Buffer = Buffer.alloc(0);
  #filled = 0;

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

  /** The first and the last bytes, at most so many of each and 16 KiB: two pieces side by side have as much, if there is as much. */
  ends(most: number): readonly [head: Buffer, tail: Buffer] {
    const head = this.pieces.slice(0, 2).map((piece) => piece.subarray(0, most));
    const tail = this.pieces.slice(-2).map((piece) => piece.subarray(-most));
    return [Buffer.concat(head).subarray(0, most), Buffer.concat(tail).subarray(-most)];
  }

  add(piece: Uint8Array): this {
    if (piece.length === 0) return this;
    this.#length += piece.length;
    const { pieces } = this;
    if (pieces.length === 1 && this.#block.length === 0 && this.#length <= this.#expected) {
      // With its second piece, the first gets memory for all.
      const first = pieces.pop() as Buffer;
      this.#begin(this.#expected);
      this.#fill(first);
    }
    if (this.#filled + piece.length <= this.#block.length) this.#fill(piece);
    else if (pieces.length === 0 || piece.length >= minKept) this.#keep(piece);
    else {
      this.#begin(blockBytes);
      this.#fill(piece);
    }
    return this;
  }

  #keep(piece: Uint8Array): void {
    this.pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    this.#block = Buffer.alloc(0);
    this.#filled = 0;
  }

  #begin(length: number): void {
    this.#block = Buffer.allocUnsafeSlow(length);
    this.#filled = 0;
    this.pieces.push(this.#block);
  }

  #fill(piece: Uint8Array): void {
    this.#block.set(piece, this.#filled);
    this.#filled += piece.length;
    this.pieces[this.pieces.length - 1] = this.#block.subarray(0, this.#filled);
  }
}
