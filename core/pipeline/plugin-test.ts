import type { CompiledModule } from "../extension/compiled-module.ts";
import type { Trial } from "../extension/plugin-trial.ts";
import { tryInThread } from "../extension/trial-thread.ts";
import type { PluginSource } from "../policy/plugin-source.ts";
import { judgeCase, type TestResult } from "../policy/test-case.ts";
import type { ReadyTest } from "../policy/test-file.ts";

/** What one case of a plugin's own tests came to. */
export type PluginTestResult = TestResult & Trial;

export interface PluginTestOptions {
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
