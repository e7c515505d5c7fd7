/** Characters after which others have their turn: a few milliseconds of serialising and hashing. */
const maxCharacters = 524_288;

/** Divides long work among turns of the event loop, by the characters that it goes through. */
export class Turns {
  readonly #pause: () => Promise<void>;
  #used = 0;

  /** `pause` resolves once others had their turn. */
  constructor(pause: () => Promise<void>) {
    this.#pause = pause;
  }

  /** Calls `use` with each piece of a text. */
  async each(pieces: Iterable<string>, use: (piece: string) => void): Promise<void> {
    for (const piece of pieces) {
      use(piece);
      await this.spend(piece.length);
    }
  }

  /** Counts characters that were gone through; resolves once others had their turn, where this one is over. */
  async spend(characters: number): Promise<void> {
    this.#used += characters;
    if (this.#used >= maxCharacters) await this.next();
  }

  /** Resolves in the next turn. */
  async next(): Promise<void> {
    this.#used = 0;
    await this.#pause();
  }
}
