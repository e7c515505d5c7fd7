import type { AbstractSnapshot } from "abstract-level";
import type { KeyRange } from "../store/key-range.ts";
import type { EvidenceStore } from "./chain/key-space.ts";

/** The store, as of one moment. */
export interface Reader {
  get(key: string): Promise<string | undefined>;
}

/** The store as it was at one moment. */
export class StoreView {
  readonly #store: EvidenceStore;
  readonly #snapshot: AbstractSnapshot;

  constructor(store: EvidenceStore, snapshot: AbstractSnapshot) {
    this.#store = store;
    this.#snapshot = snapshot;
  }

  get(key: string): Promise<string | undefined> {
    return this.#store.get(key, { snapshot: this.#snapshot });
  }

  getMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    return this.#store.getMany([...keys], { snapshot: this.#snapshot });
  }

  values(range: RangeOptions): Promise<string[]> {
    return this.#store.values({ ...range, snapshot: this.#snapshot }).all();
  }

  /** Keys and values of a range, one after another. */
  entries(range: RangeOptions): AsyncIterable<[string, string]> {
    return this.#store.iterator({ ...range, snapshot: this.#snapshot });
  }
}

interface RangeOptions extends KeyRange {
  readonly reverse?: boolean;
  readonly limit?: number;
}
