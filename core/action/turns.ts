/** Characters after which others have their turn: a few milliseconds of serialising and hashing. */
const maxCharacters = 524_288;
/** The same where members and items are many, or the machine is slow. */
const maxMs = 4;

/** Divides long work among turns of the event loop, by the characters that it goes through and by its time. */
export class Turns {
  readonly #pause: () => Promise<void>;
  readonly #elapsedMs: () => number;
  #used = 0;
  #beganMs: number;

  /** `pause` resolves once others had their turn. `elapsedMs`: monotonic, with fractions of a millisecond. */
  constructor(pause: () => Promise<void>, elapsedMs: () => number) {
    this.#pause = pause;
    this.#elapsedMs = elapsedMs;
    this.#beganMs = elapsedMs();
  }

  /** Calls `use` with each piece of a text that is not empty. */
  async each<Piece extends string | Uint8Array>(pieces: Iterable<Piece>, use: (piece: Piece) => void): Promise<void> {
    for (const piece of pieces) {
      if (piece.length > 0) use(piece);
      await this.spend(piece.length);
    }
  }

  /** Counts characters that were gone through; resolves once others had their turn, where this one is over. */
  async spend(characters: number): Promise<void> {
    this.#used += characters;
    if (this.#used >= maxCharacters || this.#elapsedMs() - this.#beganMs >= maxMs) await this.next();
  }

  /** Resolves in the next turn. */
  async next(): Promise<void> {
    await this.#pause();
    this.#used = 0;
    this.#beganMs = this.#elapsedMs();
  }
}
