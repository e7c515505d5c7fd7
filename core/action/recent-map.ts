/** One entry, between one that was used after it and one that was used before it. */
interface Link<V> {
  readonly key: string;
  value: V;
  newer: Link<V> | undefined;
  older: Link<V> | undefined;
}

/**
 * A map in order of use, with operations of constant cost. Deleting and re-adding an entry of a `Map` to keep it in order
 * costs more the larger the map is.
 */
export class RecentMap<V> {
  readonly #links = new Map<string, Link<V>>();
  #newest: Link<V> | undefined;
  #oldest: Link<V> | undefined;

  get size(): number {
    return this.#links.size;
  }

  /** Returns a value without changing the order. */
  peek(key: string): V | undefined {
    return this.#links.get(key)?.value;
  }

  /** Returns a value and makes its entry the most recently used one. */
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

  /** Deletes the least recently used entries until at most `maxSize` are left. */
  forgetOldest(maxSize: number): void {
    while (this.#links.size > maxSize && this.#oldest !== undefined) this.delete(this.#oldest.key);
  }

  /** Entries, the least recently used first. The current entry may be deleted while iterating. */
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

/** Deletes the oldest entries until at most `maxSize` are left. Maps and sets iterate in order of insertion. */
export function forgetOldest(kept: Map<string, unknown> | Set<string>, maxSize: number): void {
  if (kept.size <= maxSize) return; // nearly always, and some callers run for every action
  for (const oldest of kept.keys()) {
    kept.delete(oldest);
    if (kept.size <= maxSize) return;
  }
}
