/** One entry, between one that was used after it and one that was used before it. */
interface Link<V> {
  readonly key: string;
  value: V;
  newer: Link<V> | undefined;
  older: Link<V> | undefined;
}

/**
 * A map that knows in which order its entries were used, for as many as there may be: each step costs the same. Taking an
 * entry out of a `Map` and putting it back in, to keep the order there, costs more the more there are.
 */
export class RecentMap<V> {
  readonly #links = new Map<string, Link<V>>();
  #newest: Link<V> | undefined;
  #oldest: Link<V> | undefined;

  get size(): number {
    return this.#links.size;
  }

  /** Without using it. */
  peek(key: string): V | undefined {
    return this.#links.get(key)?.value;
  }

  /** The entry is the one used last from now on. */
  get(key: string): V | undefined {
    const link = this.#links.get(key);
    if (link === undefined) return undefined;
    if (link !== this.#newest) {
      this.#unlink(link);
      this.#append(link);
    }
    return link.value;
  }

  set(key: string, value: V): void {
    const link = this.#links.get(key);
    if (link === undefined) {
      const added: Link<V> = { key, value, newer: undefined, older: undefined };
      this.#links.set(key, added);
      this.#append(added);
      return;
    }
    link.value = value;
    this.get(key);
  }

  delete(key: string): boolean {
    const link = this.#links.get(key);
    if (link !== undefined) this.#unlink(link);
    return this.#links.delete(key);
  }

  /** Lets go of those that were not used for longest until at most `most` are left. */
  forgetOldest(most: number): void {
    while (this.size > most && this.#oldest !== undefined) this.delete(this.#oldest.key);
  }

  /** The one that was not used for longest first. The entry it stands at may be deleted. */
  *entries(): Iterable<readonly [key: string, value: V]> {
    for (let link = this.#oldest; link !== undefined; ) {
      const { newer } = link;
      yield [link.key, link.value];
      link = newer;
    }
  }

  #append(link: Link<V>): void {
    link.older = this.#newest;
    link.newer = undefined;
    if (this.#newest !== undefined) this.#newest.newer = link;
    this.#newest = link;
    this.#oldest ??= link;
  }

  #unlink({ newer, older }: Link<V>): void {
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
  }
}

/** Lets go of the oldest until at most `most` are kept. Maps and sets keep the order of insertion: the first is the oldest. */
export function forgetOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  if (kept.size <= most) return; // nearly always, and some callers are on the road of every action
  for (const oldest of kept.keys()) {
    kept.delete(oldest);
    if (kept.size <= most) return;
  }
}
