/** Facts of one kind, each told once. */
export interface Facts<T> {
  readonly items: readonly T[];
  /** Whether there are, or may be, others that are not told. */
  readonly more: boolean;
}

const mostFacts = 20;

/** Gathers the first twenty different facts, and knows when it left something out. */
export class FactSet<T> {
  readonly #items = new Map<string, T>();
  #more = false;

  /** True once nothing that is still to come would be told or change what is. */
  get isFull(): boolean {
    return this.#more && this.#items.size === mostFacts;
  }

  /** `key` is equal for equal facts. */
  add(key: string, fact: T): void {
    if (this.#items.has(key)) return;
    if (this.#items.size === mostFacts) this.#more = true;
    else this.#items.set(key, fact);
  }

  /** There is a fact too long, or too dear, to be told. */
  leaveOut(): void {
    this.#more = true;
  }

  facts(): Facts<T> {
    return { items: [...this.#items.values()], more: this.#more };
  }
}
