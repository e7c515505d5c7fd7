import { setImmediate } from "node:timers/promises";
import type { AbstractBatchOptions, AbstractLevel } from "abstract-level";

/** The database as this folder uses it. */
export type NotifyStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** One step of an atomic batch. */
export type Operation =
  | { readonly type: "put"; readonly key: string; readonly value: string }
  | { readonly type: "del"; readonly key: string };

/** The abstract interface does not name `sync`; both engines take it. */
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

const maxChangesABatch = 256;
const pauseMs = 1_000;
/** What an operation takes in memory beside its text. */
const operationBytes = 256;

/**
 * Writes changes to the store behind the back of who makes them: in their order, each whole, many to one synced batch,
 * one batch at a time. Until a change is written it waits in memory; `backlogBytes` says about how much does.
 */
export class Journal {
  readonly #store: NotifyStore;
  readonly #onFault: (cause: unknown) => void;
  readonly #waiting: (readonly Operation[])[] = [];
  #bytes = 0;
  #running: Promise<void> | null = null;
  #turn: Promise<void> = Promise.resolve();
  #pause: (() => void) | undefined;
  #opened = 0;
  #closed = false;

  /** `onFault` hears each write that failed. */
  constructor(store: NotifyStore, onFault: (cause: unknown) => void) {
    this.#store = store;
    this.#onFault = onFault;
    store.on("open", () => this.#opened++);
  }

  get backlogBytes(): number {
    return this.#bytes;
  }

  /** Takes operations that belong together. */
  write(change: readonly Operation[]): void {
    this.#waiting.push(change);
    this.#bytes += sizeOf(change);
    this.#running ??= this.#run();
  }

  /** Resolves when what was taken so far is durable, or could not be written for now. */
  async settled(): Promise<void> {
    if (this.#running === null) return;
    // The batch on its way may have begun before the latest change; what waits behind it takes a known number of turns.
    for (let turns = Math.ceil(this.#waiting.length / maxChangesABatch) + 1; turns > 0; turns--) await this.#turn;
  }

  /** Writes what waits, as far as the store takes it, and stops. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pause?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    // One turn of the event loop: what happens in this one shares the first batch.
    this.#turn = setImmediate();
    await this.#turn;
    while (this.#waiting.length > 0) {
      const handle = this.#opened;
      const attempt = this.#commit();
      this.#turn = attempt.then(noop, noop);
      try {
        await attempt;
      } catch (cause) {
        this.#onFault(cause);
        if (this.#closed) break;
        // The database may hold half a record now, behind which nothing may be written: it is closed, so that whoever
        // needs it next opens it anew. Where somebody has done either already, it is theirs to repair.
        if (handle === this.#opened && !isClosed(cause)) await this.#store.close().catch(noop);
        await this.#rest();
      }
    }
    this.#running = null;
  }

  async #commit(): Promise<void> {
    const changes = this.#waiting.slice(0, maxChangesABatch);
    await this.#store.batch(changes.flat() as Operation[], durably);
    // COMMIT POINT: only now may they be forgotten. Written twice, they come to the same.
    this.#waiting.splice(0, changes.length);
    for (const change of changes) this.#bytes -= sizeOf(change);
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      this.#pause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "LEVEL_DATABASE_NOT_OPEN";
}

function sizeOf(change: readonly Operation[]): number {
  return change.reduce(
    (sum, operation) => sum + operationBytes + (operation.type === "put" ? operation.value.length : 0),
    0,
  );
}

function noop(): void {}
