import { Worker } from "node:worker_threads";
import type { PoolOrder, PoolReply } from "./pool-order.ts";

const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 } as const;

export interface PoolThreadListener {
  /** It can be sent orders. */
  readonly ready: () => void;
  readonly replied: (reply: PoolReply) => void;
  /** It ended, by itself or stopped; nothing more comes from it. */
  readonly gone: () => void;
}

/** A thread that runs one call at a time. Nothing of it keeps the process alive. */
export class PoolThread {
  readonly #worker: Worker;

  constructor(listener: PoolThreadListener) {
    this.#worker = new Worker(new URL("./pool-worker.js", import.meta.url), { env: {}, resourceLimits });
    this.#worker.unref();
    this.#worker.once("online", listener.ready);
    this.#worker.on("message", listener.replied);
    // `exit` follows, with or without an error before it.
    this.#worker.once("error", () => undefined);
    this.#worker.once("exit", listener.gone);
  }

  send(order: PoolOrder): void {
    this.#worker.postMessage(order, [order.input.buffer as ArrayBuffer]);
  }

  /** Stops it in the middle of whatever it runs. */
  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
