import type { ActionEnvelope } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import type { Verdict } from "../action/policy.ts";
import { findRedactionFault } from "../action/redaction.ts";
import { encodeInput, pluginInput } from "../plugin/abi.ts";
import { PluginBreach } from "../plugin/breach.ts";
import { configOf } from "../plugin/compiled-module.ts";
import { type CompiledModule, PluginMachine } from "../plugin/plugin-machine.ts";
import { readPluginVerdict } from "../plugin/plugin-verdict.ts";

/** The plugin under test. */
export interface TestedPlugin {
  readonly compiled: CompiledModule;
  /** The prefix of its rules. */
  readonly name: string;
  /** The fuel limit of a call. */
  readonly fuel: number;
}

/** One input of the plugin. */
export interface TestInput {
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}

/** The result of one call of a plugin. */
export interface PluginRun {
  /** `block` with an error where the plugin failed, as in the chain. */
  readonly verdict: Verdict;
  /** Fuel used by the call; the limit where it ran out. */
  readonly fuelUsed: number;
  /** The engine's stack trace of a failure; undefined otherwise. */
  readonly stack: string | undefined;
}

/** Calls a plugin once from its fresh state, for tests: without breaker and observer. */
export async function runPluginOnce(plugin: TestedPlugin, { settings, action }: TestInput): Promise<PluginRun> {
  const { compiled, name, fuel } = plugin;
  const machine = await PluginMachine.open({ ...compiled, config: configOf(settings) });
  const end = (verdict: Verdict, stack?: string): PluginRun => {
    return { verdict, fuelUsed: Math.min(fuel, machine.fuelUsed), stack };
  };
  try {
    const answer = machine.call(encodeInput(pluginInput(JSON.stringify(settings), action)), fuel);
    const verdict = readPluginVerdict(answer, name, action.phase);
    const fault = findRedactionFault(action.output ?? null, verdict.redactions ?? []);
    return end(fault === undefined ? verdict : blocked(fault));
  } catch (breach) {
    if (!(breach instanceof PluginBreach)) throw breach;
    const engineError = await machine.engineError;
    const { stack } = engineError instanceof Error ? engineError : breach;
    return end(blocked(breach.message), stack);
  }
}

function blocked(error: string): Verdict {
  return { decision: "block", findings: [], risk: 0, error };
}
