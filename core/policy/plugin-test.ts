import { Worker } from "node:worker_threads";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Verdict } from "../action/policy.ts";
import { findRedactionFault } from "../action/redaction.ts";
import { encodeInput } from "../plugin/abi.ts";
import { PluginBreach } from "../plugin/breach.ts";
import type { CompiledModule } from "../plugin/compiled-module.ts";
import { PluginMachine } from "../plugin/plugin-machine.ts";
import { readPluginVerdict } from "../plugin/plugin-verdict.ts";
import type { PluginSource } from "./plugin-source.ts";
import { judgeCase, type TestResult } from "./test-case.ts";
import type { ReadyTest } from "./test-file.ts";

/** A plugin to try. */
interface TrialPlugin {
  readonly compiled: CompiledModule;
  /** Its rules begin with it. */
  readonly name: string;
  /** Units one call may spend. */
  readonly fuel: number;
}

/** What it is asked. */
interface TrialCase {
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}

/** What one call of a plugin came to. */
interface Trial {
  /** `block` with an error where the plugin did not answer, as in the chain. */
  readonly verdict: Verdict;
  /** Units of fuel the call took; all of them, where it ran out. */
  readonly fuelUsed: number;
  /** Where it broke off, in the engine's words; undefined where it answered. */
  readonly stack: string | undefined;
}

/** Asks a plugin once, from its fresh state, for those who test it: no breaker counts, nothing is observed. */
export function runPluginOnce({ compiled, name, fuel }: TrialPlugin, { settings, action }: TrialCase): Trial {
  const machine = new PluginMachine(compiled);
  const end = (verdict: Verdict, stack?: string): Trial => {
    return { verdict, fuelUsed: Math.min(fuel, machine.fuelUsed), stack };
  };
  try {
    const answer = machine.call(encodeInput(JSON.stringify(settings), action), fuel);
    const verdict = readPluginVerdict(answer, name, action.phase);
    const fault = findRedactionFault(action.output ?? null, verdict.redactions ?? []);
    return end(fault === undefined ? verdict : blocked(fault));
  } catch (breach) {
    if (!(breach instanceof PluginBreach)) throw breach;
    const { stack } = breach.cause instanceof Error ? breach.cause : breach;
    return end(blocked(breach.message), stack);
  }
}

function blocked(error: string): Verdict {
  return { decision: "block", findings: [], risk: 0, error };
}

/** What the thread is given. */
export interface TrialOrder {
  readonly plugin: TrialPlugin;
  readonly cases: readonly TrialCase[];
}

/** Units that all cases of a plugin may spend together: ten calls of the dearest plugin, about 200 ms. */
export const testFuel = 500_000_000;
const trialMs = 10_000;
const heapMegabytes = 128;

/**
 * Asks a plugin about each case in a thread of its own, so that nobody else waits; answers with what each came to, in
 * order, and tells it as it comes. Rejects with PLUGIN_INVALID where they spend more than `testFuel` together, or take 10 s.
 */
async function tryInThread(order: TrialOrder, onTrial?: (trial: Trial) => void): Promise<readonly Trial[]> {
  const { plugin, cases } = order;
  if (cases.length === 0) return [];
  const worker = new Worker(new URL("./plugin-test-worker.js", import.meta.url), {
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
      if (spent > testFuel) return fail(`of at most ${testFuel} units of fuel in all`);
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

/** What one case of a plugin's own tests came to. */
export type PluginTestResult = TestResult & Trial;

interface PluginTestOptions {
  readonly source: Pick<PluginSource, "name" | "limits">;
  readonly compiled: CompiledModule;
  readonly tests: readonly ReadyTest[];
  /** Hears of each as it ends. */
  readonly onResult?: (result: PluginTestResult) => void;
}

/**
 * Runs a plugin's own tests in the sandbox, each from its fresh state. Rejects with PLUGIN_INVALID where they take more
 * than a load of the plugin may.
 */
export async function runPluginTests(options: PluginTestOptions): Promise<readonly PluginTestResult[]> {
  const { source, compiled, tests, onResult } = options;
  const plugin = { compiled, name: source.name, fuel: source.limits.fuel };
  const cases = tests.map(({ test, settings }) => ({ settings, action: test.envelope }));
  const results: PluginTestResult[] = [];
  await tryInThread({ plugin, cases }, (trial) => {
    const ready = tests[results.length];
    if (ready === undefined) throw new TypeError("runPluginTests: expected one trial a case");
    const result = { ...judgeCase(ready.test, trial.verdict), ...trial };
    results.push(result);
    onResult?.(result);
  });
  return results;
}
