import { Worker } from "node:worker_threads";
import type { Damage } from "./damage.ts";

/** The message of the thread. */
export interface DamageAnswer {
  readonly damage: Damage | undefined;
}

/**
 * Checks every byte of every file of a store, as `findDamage` does, on a thread of its own: requests are served meanwhile.
 * Rejects with the signal's reason once that is aborted.
 */
export function findDamageInThread(folder: string, signal: AbortSignal): Promise<Damage | undefined> {
  if (signal.aborted) return Promise.reject(signal.reason);
  const worker = new Worker(new URL("./damage-worker.js", import.meta.url), { workerData: folder, env: {} });
  let abort = (): void => {};
  return new Promise<Damage | undefined>((resolve, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    worker.once("message", ({ damage }: DamageAnswer) => resolve(damage));
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("the check of the store ended without an answer")));
  }).finally(() => {
    signal.removeEventListener("abort", abort);
    void worker.terminate();
  });
}
