import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Verdict } from "../kernel/policy.ts";
import { findRedactionFault } from "../kernel/redacted-output.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { encodeInput } from "./plugin-input.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { readPluginVerdict } from "./plugin-verdict.ts";

/** A plugin to try. */
export interface TrialPlugin {
  readonly compiled: CompiledModule;
  /** Its rules begin with it. */
  readonly name: string;
  /** Units one call may spend. */
  readonly fuel: number;
}

/** What it is asked. */
export interface TrialCase {
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}

/** What one call of a plugin came to. */
export interface Trial {
  /** `block` with an error where the plugin did not answer, as in the chain. */
  readonly verdict: Verdict;
  /** Units of fuel the call took; all of them, where it ran out. */
  readonly fuelUsed: number;
  /** Where it broke off, in the engine's words; undefined where it answered. */
  readonly stack: string | undefined;
}

/** Asks a plugin once, from its fresh state, for those who test it: no breaker counts, nothing is observed. */
export function tryPlugin({ compiled, name, fuel }: TrialPlugin, { settings, action }: TrialCase): Trial {
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
