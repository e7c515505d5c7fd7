import { Worker } from "node:worker_threads";
import { GatewayError } from "../kernel/error.ts";
import type { Trial, TrialCase, TrialPlugin } from "./plugin-trial.ts";

/** What the thread is given. */
export interface TrialOrder {
  readonly plugin: TrialPlugin;
  readonly cases: readonly TrialCase[];
}

/** Units that all cases of a plugin may spend together: ten calls of the dearest plugin, about 200 ms. */
export const trialFuel = 500_000_000;
const trialMs = 10_000;
const heapMegabytes = 128;

/**
 * Asks a plugin about each case in a thread of its own, so that nobody else waits; answers with what each came to, in
 * order, and tells it as it comes. Rejects with PLUGIN_INVALID where they spend more than `trialFuel` together, or take 10 s.
 */
export async function tryInThread(order: TrialOrder, onTrial?: (trial: Trial) => void): Promise<readonly Trial[]> {
  const { plugin, cases } = order;
  if (cases.length === 0) return [];
  const worker = new Worker(new URL("./trial-worker.js", import.meta.url), {
    workerData: order,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
  });
  const trials: Trial[] = [];
  let spent = 0;
  return new Promise<readonly Trial[]>((resolve, reject) => {
    const fail = (detail: string): void => {
      reject(new GatewayError("PLUGIN_INVALID", `\`${plugin.name}\`: expected tests ${detail}`));
    };
    const timer = setTimeout(() => fail(`that end within ${trialMs} ms`), trialMs);
    worker.on("message", (trial: Trial) => {
      spent += trial.fuelUsed;
      if (spent > trialFuel) return fail(`of at most ${trialFuel} units of fuel in all`);
      trials.push(trial);
      onTrial?.(trial);
      if (trials.length === cases.length) resolve(trials);
    });
    worker.once("error", () => fail("that run within bounds"));
    worker.once("exit", () => {
      clearTimeout(timer);
      fail("that run to their end");
    });
  }).finally(() => void worker.terminate());
}
