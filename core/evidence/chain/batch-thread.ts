import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type PackedValues, unpackValues } from "../../store/packed-value.ts";
import type { EncodingOrder } from "./batch-value.ts";

/** A message of the thread; without values, it is ready. */
export interface BatchAnswer {
  readonly values?: PackedValues;
}

interface Waiting {
  readonly resolve: (values: readonly (Uint8Array | undefined)[]) => void;
  readonly reject: (error: Error) => void;
}

/** Characters from which on a batch waits for the thread to start: elsewhere it would hold everybody up for longer. */
const minAwaitedSize = 262_144;

/**
 * Encodes and seals the values of large batches on a thread of its own, which the first of them starts. A thread that ended by
 * itself is not started again.
 */
export class BatchThread {
  readonly #program: URL;
  #worker: Worker | undefined;
  #isReady = false;
  /** Resolves once the thread has started, or has failed to. */
  #started: Promise<unknown> | undefined;
  #waiting: Waiting | undefined;

  /** `program`: what the thread runs, as `batch-worker.ts` does. */
  constructor(program: URL = new URL("./batch-worker.js", import.meta.url)) {
    this.#program = program;
  }

  /** Returns true where the thread takes a batch now; starts it. */
  prepare(): boolean {
    this.#worker ??= this.#start();
    return this.#isReady;
  }

  /** The same for a batch of so many characters: a large one waits until the thread has started. */
  async takes(characters: number): Promise<boolean> {
    if (this.prepare()) return true;
    if (characters < minAwaitedSize) return false;
    await this.#started;
    return this.#isReady;
  }

  /** Returns the bytes of values in their order, after `takes` in the same turn. One batch at a time. */
  encode(order: EncodingOrder): Promise<readonly (Uint8Array | undefined)[]> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#worker?.postMessage(order);
    });
  }

  /** Ends the thread. Call while nothing is encoded. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(this.#program, { env: {} });
    worker.on("message", ({ values }: BatchAnswer) => {
      this.#isReady = true;
      if (values !== undefined) this.#waiting?.resolve(unpackValues(values));
    });
    const fail = (error: Error): void => {
      this.#isReady = false;
      this.#waiting?.reject(error);
    };
    worker.on("error", fail);
    worker.on("exit", () => fail(new Error("the thread that encodes records ended")));
    // After those above, which say whether it is ready.
    this.#started = Promise.race([once(worker, "message"), once(worker, "exit")]).catch(() => undefined);
    return worker;
  }
}
