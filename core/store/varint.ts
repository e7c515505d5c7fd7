import { DamageError } from "./file-window.ts";

/** Reads numbers in LevelDB's variable length, and what they are the lengths of. Throws DamageError where they end too early. */
export class VarintReader {
  readonly #bytes: Buffer;
  readonly #offset: number;
  readonly #what: string;
  #at = 0;

  /** `offset`: that of the bytes in their file; `what`: their name in errors. */
  constructor(bytes: Buffer, offset: number, what: string) {
    this.#bytes = bytes;
    this.#offset = offset;
    this.#what = what;
  }

  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  next(): number {
    let number = 0;
    for (let shift = 0; shift < 63; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      number += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return number;
    }
    throw this.fault();
  }

  skip(length: number): void {
    this.#at += length;
    if (this.#at > this.#bytes.length) throw this.fault();
  }

  fault(): DamageError {
    return new DamageError(this.#offset, `${this.#what} cannot be read`);
  }
}
