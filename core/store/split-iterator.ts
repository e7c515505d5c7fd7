import { AbstractIterator } from "abstract-level";
import type { RecordFamily, StringLevel } from "./key-range.ts";

/** A part of a range, as one database has it. */
export interface RangePart {
  /** Undefined where the keys are what they are in the database. */
  readonly family: RecordFamily | undefined;
  readonly entries: AbstractIterator<unknown, string, Buffer>;
}

type Entry = [key: string | Buffer | undefined, value: Buffer | undefined];

/** The entries of a range that lie in several databases, or among others, in the order of their keys. */
export class SplitIterator extends AbstractIterator<StringLevel, string, Buffer> {
  readonly #parts: readonly RangePart[];
  readonly #isKeyBytes: boolean;
  #at = 0;

  constructor(store: StringLevel, options: object & { readonly keyEncoding: string }, parts: readonly RangePart[]) {
    super(store, options);
    this.#parts = parts;
    this.#isKeyBytes = options.keyEncoding !== "utf8";
  }

  async _next(): Promise<Entry | undefined> {
    for (let part = this.#parts[this.#at]; part !== undefined; part = this.#parts[++this.#at]) {
      for (;;) {
        const entry = await part.entries.next();
        if (entry === undefined) break;
        const found = this.#entryOf(part, entry);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  async _nextv(size: number): Promise<Entry[]> {
    for (let part = this.#parts[this.#at]; part !== undefined; part = this.#parts[++this.#at]) {
      for (;;) {
        const entries = await part.entries.nextv(size);
        if (entries.length === 0) break;
        const found: Entry[] = [];
        for (const entry of entries) {
          const own = this.#entryOf(part, entry);
          if (own !== undefined) found.push(own);
        }
        if (found.length > 0) return found;
      }
    }
    return [];
  }

  async _close(): Promise<void> {
    await Promise.all(this.#parts.map(({ entries }) => entries.close()));
  }

  #entryOf({ family }: RangePart, [at, value]: [string, Buffer]): Entry | undefined {
    const key = family === undefined ? at : family.keyAt(at);
    if (key === undefined) return undefined;
    return [this.#isKeyBytes ? Buffer.from(key) : key, value];
  }
}
