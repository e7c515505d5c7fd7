import type { Taint } from "../kernel/session-state.ts";

const most = 64;

/**
 * What a session is tainted with: one taint of a name, the first that came. A taint is in force when it is added, and
 * remembers until when it is not on record.
 */
export class TaintSet {
  readonly #taints: Map<string, Taint>;
  /** Of those that are not on record: the attempt that is under way, or null. */
  readonly #unrecorded = new Map<string, Promise<void> | null>();
  #list: readonly Taint[] | undefined;

  /** `taints`: those on record. */
  constructor(taints: readonly Taint[] = []) {
    this.#taints = new Map(taints.map((taint) => [taint.name, Object.freeze(taint)]));
  }

  get list(): readonly Taint[] {
    this.#list ??= Object.freeze([...this.#taints.values()]);
    return this.#list;
  }

  /** Whether one more taint of each name may come. Whoever finds no room refuses what would bring it. */
  hasRoom(names: readonly string[]): boolean {
    return this.#taints.size + names.filter((name) => !this.#taints.has(name)).length <= most;
  }

  /** Whether there was none of that name. */
  add(taint: Taint): boolean {
    if (this.#taints.has(taint.name)) return false;
    this.#taints.set(taint.name, Object.freeze(taint));
    this.#unrecorded.set(taint.name, null);
    this.#list = undefined;
    return true;
  }

  /**
   * Resolves when all taints of these names are on record; `record` is called for those that nobody is recording.
   * Rejects with what it rejects with; then these are recorded by the next who asks.
   */
  async settle(names: readonly string[], record: (names: readonly string[]) => Promise<void>): Promise<void> {
    const due = names.filter((name) => this.#unrecorded.get(name) === null);
    if (due.length > 0) this.#await(due, record(due));
    await Promise.all(names.map((name) => this.#unrecorded.get(name)));
  }

  #await(names: readonly string[], attempt: Promise<void>): void {
    const end = (isRecorded: boolean): void => {
      for (const name of names) {
        if (this.#unrecorded.get(name) !== attempt) continue;
        if (isRecorded) this.#unrecorded.delete(name);
        else this.#unrecorded.set(name, null);
      }
    };
    for (const name of names) this.#unrecorded.set(name, attempt);
    attempt.then(
      () => end(true),
      () => end(false),
    );
  }
}
