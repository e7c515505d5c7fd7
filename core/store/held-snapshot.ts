import type { AbstractSnapshot } from "abstract-level";
import type { StringLevel } from "./key-range.ts";

const heldByStore = new WeakMap<StringLevel, Set<Promise<void>>>();

/** A snapshot of a store that `rewriteRange` waits for. */
export class HeldSnapshot implements AsyncDisposable {
  readonly snapshot: AbstractSnapshot;
  readonly #held: Set<Promise<void>>;
  readonly #closed: Promise<void>;
  #markClosed: () => void = () => {};

  constructor(store: StringLevel) {
    this.snapshot = store.snapshot();
    this.#closed = new Promise((resolve) => {
      this.#markClosed = resolve;
    });
    this.#held = heldByStore.get(store) ?? new Set();
    this.#held.add(this.#closed);
    heldByStore.set(store, this.#held);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.snapshot.close();
    this.#held.delete(this.#closed);
    this.#markClosed();
  }
}

/** The snapshots of a store that are held: each resolves when it is closed. */
export function heldSnapshots(store: StringLevel): readonly Promise<void>[] {
  return [...(heldByStore.get(store) ?? [])];
}
