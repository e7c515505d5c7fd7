import type { Clock } from "../kernel/port.ts";

const freshMs = 60_000;
const shortestIntervalMs = 1_000;

/**
 * A list that is read again when it is a minute old or known to have changed. A failed reading keeps the last good
 * list, and no reading follows a failed one within a second.
 */
export class CachedList<T> {
  readonly #load: () => Promise<T>;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;
  #good: T | undefined;
  #readAt: number = Number.NEGATIVE_INFINITY;
  #changed = false;
  #failed = false;
  #reading: Promise<T | undefined> | undefined;

  constructor(load: () => Promise<T>, clock: Clock, onFault: (error: unknown) => void) {
    this.#load = load;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** The last good list. */
  get good(): T | undefined {
    return this.#good;
  }

  /** Whether the list is known to have changed since it was read, and nothing is known against reading it. */
  get changed(): boolean {
    return this.#changed && !this.#failed;
  }

  /** The list has changed: it is read again before it is shown again. */
  invalidate(): void {
    this.#changed = true;
    this.#failed = false;
  }

  /**
   * The list, read again where it is stale. Undefined where it could never be read; never rejects.
   * Where the last reading failed nobody waits for the next one: a source that hangs must not hold up the others.
   */
  read(): T | undefined | Promise<T | undefined> {
    const age = this.#clock() - this.#readAt;
    const stale = this.#good === undefined || this.#changed || age >= freshMs;
    if (!stale) return this.#good;
    const read = this.refresh();
    return this.#failed ? this.#good : read;
  }

  /** Reads the list again, unless that was done within the last second and nothing is known to have changed. */
  refresh(): T | undefined | Promise<T | undefined> {
    if (this.#reading !== undefined) return this.#reading;
    const soon = this.#clock() - this.#readAt < shortestIntervalMs;
    if (soon && (this.#failed || !this.#changed)) return this.#good;
    this.#reading = this.#read();
    return this.#reading;
  }

  async #read(): Promise<T | undefined> {
    this.#readAt = this.#clock();
    this.#changed = false;
    try {
      this.#good = await this.#load();
      this.#failed = false;
    } catch (error) {
      this.#failed = true;
      this.#changed = true;
      this.#onFault(error);
    } finally {
      this.#reading = undefined;
    }
    return this.#good;
  }
}
