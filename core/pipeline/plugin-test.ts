import { setImmediate as nextTurn } from "node:timers/promises";
import type { PluginBreach } from "../extension/breach.ts";
import type { CompiledModule } from "../extension/compiled-module.ts";
import { tryPlugin } from "../extension/plugin-trial.ts";
import { GatewayError } from "../kernel/error.ts";
import type { PluginSource } from "../policy/plugin-source.ts";
import { judgeCase, type TestResult } from "../policy/test-case.ts";
import type { ReadyTest } from "../policy/test-file.ts";

/** What one case of a plugin's own tests came to. */
export interface PluginTestResult extends TestResult {
  /** Units of fuel the call took. */
  readonly fuelUsed: number;
  /** Why the plugin did not answer, if it did not. */
  readonly breach: PluginBreach | undefined;
}

/** Units that all tests of a plugin may spend together: ten calls of the dearest plugin, about 200 ms. */
export const testFuel = 500_000_000;

/**
 * Runs a plugin's own tests in the sandbox, each in an instance of its own, and lets others run in between. Throws
 * PLUGIN_INVALID where they spend more than \`testFuel\` together: they run at each load of the plugin.
 */
export async function* runPluginTests(
  { name, limits: { fuel } }: Pick<PluginSource, "name" | "limits">,
  compiled: CompiledModule,
  tests: readonly ReadyTest[],
): AsyncGenerator<PluginTestResult> {
  let spent = 0;
  for (const { test, settings } of tests) {
    await nextTurn();
    const { verdict, breach, fuelUsed } = tryPlugin({ compiled, name, settings, fuel }, test.envelope);
    spent += fuelUsed;
    if (spent > testFuel) {
      throw new GatewayError(
        "PLUGIN_INVALID",
        `\`${name}\`: expected tests of at most ${testFuel} units of fuel in all`,
      );
    }
    yield { ...judgeCase(test, verdict), fuelUsed, breach };
  }
}
