import type { MessagePort } from "node:worker_threads";
import { type PackedValues, unpackValues } from "../../store/packed-value.ts";
import { decodeValue } from "../../store/value-decoding.ts";
import type { ChainView, EntryReader, RangeOptions } from "../record/store-view.ts";
import type { GoingRecords } from "../retention/record-sweep.ts";

/** A question of the thread that reads to the one that has the store. */
export type ViewQuestion =
  | { readonly ask: "get"; readonly keys: readonly string[] }
  /** Some entries of a range: from `reader`, which is opened where it is new. */
  | { readonly ask: "next"; readonly reader: number; readonly range: RangeOptions; readonly size: number }
  | { readonly ask: "close"; readonly reader: number }
  | { readonly ask: "going"; readonly going: GoingRecords };

/** The answer to a question; `fault` where the store could not be read. */
export interface ViewAnswer {
  readonly id: number;
  readonly keys?: readonly string[];
  readonly values?: PackedValues;
  readonly fault?: string;
}

interface Waiting {
  readonly resolve: (answer: ViewAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** The store of another thread. Values come as that thread's store keeps them, and are decoded on this one. */
export class RemoteView implements ChainView {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #readers = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on("message", (answer: ViewAnswer) => this.#accept(answer));
  }

  async get(key: string): Promise<string | undefined> {
    const [value] = await this.getMany([key]);
    return value;
  }

  async getMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    return valuesOf(await this.#ask({ ask: "get", keys }));
  }

  async values({ limit = Number.POSITIVE_INFINITY, ...range }: RangeOptions): Promise<string[]> {
    await using entries = this.read(range);
    const values: string[] = [];
    while (values.length < limit) {
      const chunk = await entries.nextv(Math.min(limit - values.length, maxChunk));
      if (chunk.length === 0) break;
      for (const [, value] of chunk) values.push(value);
    }
    return values;
  }

  read(range: RangeOptions): EntryReader {
    const reader = this.#readers++;
    const nextv = async (size: number): Promise<[string, string][]> => {
      const answer = await this.#ask({ ask: "next", reader, range, size });
      const values = valuesOf(answer);
      return (answer.keys ?? []).map((key, at) => [key, values[at] ?? ""]);
    };
    let ahead: [string, string][] = [];
    return {
      nextv,
      next: async () => {
        if (ahead.length === 0) ahead = (await nextv(aheadEntries)).reverse();
        return ahead.pop();
      },
      [Symbol.asyncDispose]: async () => {
        await this.#ask({ ask: "close", reader });
      },
    };
  }

  /** Resolves when the records are deleted. */
  async report(going: GoingRecords): Promise<void> {
    await this.#ask({ ask: "going", going });
  }

  #ask(question: ViewQuestion): Promise<ViewAnswer> {
    const id = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#port.postMessage({ id, ...question });
    });
  }

  #accept(answer: ViewAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.fault === undefined) waiting?.resolve(answer);
    else waiting?.reject(new Error(answer.fault));
  }
}

const maxChunk = 256;
/** Entries that are read where they are wanted one by one. */
const aheadEntries = 16;

function valuesOf({ values }: ViewAnswer): (string | undefined)[] {
  if (values === undefined) return [];
  return unpackValues(values).map((value) => value && decodeValue(value));
}
