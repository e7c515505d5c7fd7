import type { Listing } from "./catalog.ts";
import type { Withheld } from "./event.ts";

/** The lists of several upstreams as one, in configuration order. A name that two claim is the earlier one's. */
export class MergedList<T extends { readonly upstream: string }> {
  readonly #keyOf: (item: T) => string;
  #sources: readonly (Listing<T> | undefined)[] = [];
  #items: readonly T[] = [];
  #byKey: ReadonlyMap<string, T> = new Map();
  #withheld: readonly Withheld[] = [];

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  get items(): readonly T[] {
    return this.#items;
  }

  /** Everything the sources withhold, and the names claimed twice. */
  get withheld(): readonly Withheld[] {
    return this.#withheld;
  }

  find(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  /** Takes the lists as they are now; does nothing when they are the same ones. Returns the names newly in conflict. */
  update(sources: readonly (Listing<T> | undefined)[]): readonly Withheld[] {
    if (sources.length === this.#sources.length && sources.every((one, at) => one === this.#sources[at])) return [];
    this.#sources = sources;
    const byKey: Map<string, T> = new Map();
    const conflicts: Withheld[] = [];
    for (const item of sources.flatMap((source) => source?.items ?? [])) {
      const key = this.#keyOf(item);
      const owner = byKey.get(key);
      if (owner === undefined) byKey.set(key, item);
      else
        conflicts.push({ upstream: item.upstream, name: key, reason: `upstream \`${owner.upstream}\` has it already` });
    }
    this.#byKey = byKey;
    this.#items = [...byKey.values()];
    this.#withheld = [...sources.flatMap((source) => source?.withheld ?? []), ...conflicts];
    return conflicts;
  }
}
