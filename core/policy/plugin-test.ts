import { Worker } from "node:worker_threads";
import { GatewayError } from "../action/error.ts";
import type { CompiledModule } from "../plugin/plugin-machine.ts";
import type { PluginRun, TestedPlugin, TestInput } from "./plugin-run.ts";
import type { PluginSource } from "./plugin-source.ts";
import { judgeCase, type TestResult } from "./test-case.ts";
import type { ReadyTest } from "./test-file.ts";

/** The input of the test thread. */
export interface PluginTestOrder {
  readonly plugin: TestedPlugin;
  readonly cases: readonly TestInput[];
}

/** The fuel of all cases of a plugin together: ten calls with the highest limit, about 200 ms. */
export const testFuel = 500_000_000;
/** Fuel bounds what the cases compute; this ends a thread that makes no progress, on however busy a machine. */
const deadlineMs = 60_000;
const heapMegabytes = 128;

/**
 * Runs each case in a thread of its own and returns the results in order; `onRun` receives each as it ends. Rejects
 * with PLUGIN_INVALID where the cases use more than `testFuel` together, or take 60 s.
 */
async function runInThread(order: PluginTestOrder, onRun?: (run: PluginRun) => void): Promise<readonly PluginRun[]> {
  const { plugin, cases } = order;
  if (cases.length === 0) return [];
  const worker = new Worker(new URL("./plugin-test-worker.js", import.meta.url), {
    workerData: order,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
  });
  const runs: PluginRun[] = [];
  let spent = 0;
  return new Promise<readonly PluginRun[]>((resolve, reject) => {
    const fail = (detail: string): void => {
      reject(new GatewayError("PLUGIN_INVALID", `\`${plugin.name}\`: expected tests ${detail}`));
    };
    const timer = setTimeout(() => fail(`that end within ${deadlineMs} ms`), deadlineMs);
    worker.on("message", (run: PluginRun) => {
      spent += run.fuelUsed;
      if (spent > testFuel) return fail(`of at most ${testFuel} units of fuel in all`);
      runs.push(run);
      onRun?.(run);
      if (runs.length === cases.length) resolve(runs);
    });
    worker.once("error", () => fail("that run within bounds"));
    worker.once("exit", () => {
      clearTimeout(timer);
      fail("that run to their end");
    });
  }).finally(() => void worker.terminate());
}

/** The result of one case of a plugin's own tests. */
export type PluginTestResult = TestResult & PluginRun;

interface PluginTestOptions {
  readonly source: Pick<PluginSource, "name" | "limits">;
  readonly compiled: CompiledModule;
  readonly tests: readonly ReadyTest[];
  /** Called with each result as it ends. */
  readonly onResult?: (result: PluginTestResult) => void;
}

/**
 * Runs a plugin's own tests in the sandbox, each from a fresh state. Rejects with PLUGIN_INVALID where they exceed the
 * limits of a load.
 */
export async function runPluginTests(options: PluginTestOptions): Promise<readonly PluginTestResult[]> {
  const { source, compiled, tests, onResult } = options;
  const plugin = { compiled, name: source.name, fuel: source.limits.fuel };
  const cases = tests.map(({ test, settings }) => ({ settings, action: test.envelope }));
  const results: PluginTestResult[] = [];
  await runInThread({ plugin, cases }, (run) => {
    const ready = tests[results.length];
    if (ready === undefined) throw new TypeError("runPluginTests: expected one run a case");
    const result = { ...judgeCase(ready.test, run.verdict), ...run };
    results.push(result);
    onResult?.(result);
  });
  return results;
}
