import { setImmediate } from "node:timers/promises";
import type { AbstractBatchOptions } from "abstract-level";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { Store } from "../store/open.ts";

/** The abstract interface does not name `sync`; both engines accept it. */
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

const maxChangesPerBatch = 1_024;
const pauseMs = 1_000;
/** Memory of an operation beside its text. */
const operationBytes = 256;

/**
 * Writes changes to the store in the background: in order, each atomically, many in one synced batch, one batch at a
 * time. A change waits in memory until it is written; `backlogBytes` is about their size.
 */
export class WriteQueue {
  readonly #store: Store;
  readonly #onFault: (cause: unknown) => void;
  readonly #waiting: (readonly BatchOperation[])[] = [];
  #bytes = 0;
  #running: Promise<void> | null = null;
  #turn: Promise<void> = Promise.resolve();
  #endPause: (() => void) | undefined;
  #openCount = 0;
  #closed = false;

  /** `onFault`: called for each write that failed. */
  constructor(store: Store, onFault: (cause: unknown) => void) {
    this.#store = store;
    this.#onFault = onFault;
    store.on("open", () => this.#openCount++);
  }

  get backlogBytes(): number {
    return this.#bytes;
  }

  /** Adds operations that are written atomically. */
  enqueue(change: readonly BatchOperation[]): void {
    this.#waiting.push(change);
    this.#bytes += sizeOf(change);
    this.#running ??= this.#run();
  }

  /** Resolves when all changes enqueued before are durable, or the store failed to write them for now. */
  async flushed(): Promise<void> {
    if (this.#running === null) return;
    // The batch in flight may have begun before the latest change; the changes behind it need a known number of turns.
    for (let turns = Math.ceil(this.#waiting.length / maxChangesPerBatch) + 1; turns > 0; turns--) await this.#turn;
  }

  /** Writes the waiting changes as far as the store accepts them, and stops. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#endPause?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    // One turn of the event loop: all changes of the current turn share the first batch.
    this.#turn = setImmediate();
    await this.#turn;
    while (this.#waiting.length > 0) {
      const openCount = this.#openCount;
      const attempt = this.#writeBatch();
      this.#turn = attempt.then(noop, noop);
      try {
        await attempt;
      } catch (cause) {
        this.#onFault(cause);
        if (this.#closed) break;
        // The database may end in half a record now, and nothing may be written behind that. Closing it makes its next
        // user open and repair it; where somebody has closed or reopened it since the attempt, that is done already.
        if (openCount === this.#openCount && !isClosedError(cause)) await this.#store.close().catch(noop);
        await this.#pause();
      }
    }
    this.#running = null;
  }

  async #writeBatch(): Promise<void> {
    const changes = this.#waiting.slice(0, maxChangesPerBatch);
    await this.#store.batch(changes.flat() as BatchOperation[], durably);
    // COMMIT POINT: the changes leave memory only now. Writing them twice has the same result.
    this.#waiting.splice(0, changes.length);
    for (const change of changes) this.#bytes -= sizeOf(change);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function isClosedError(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "LEVEL_DATABASE_NOT_OPEN";
}

function sizeOf(change: readonly BatchOperation[]): number {
  return change.reduce(
    (sum, operation) => sum + operationBytes + (operation.type === "put" ? operation.value.length : 0),
    0,
  );
}

function noop(): void {}
