import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Verdict } from "../kernel/policy.ts";
import { findRedactionFault } from "../kernel/redacted-output.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { encodeInput } from "./plugin-input.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { readPluginVerdict } from "./plugin-verdict.ts";

export interface TrialOptions {
  readonly compiled: CompiledModule;
  /** The plugin's name, with which its rules begin. */
  readonly name: string;
  readonly settings: JsonObject;
  /** Units one call may spend. */
  readonly fuel: number;
}

/** What one call of a plugin came to. */
export interface Trial {
  /** `block` with an error where the plugin did not answer, as in the chain. */
  readonly verdict: Verdict;
  readonly breach: PluginBreach | undefined;
  /** Units of fuel the call took; all of them, where it ran out. */
  readonly fuelUsed: number;
}

/** Asks a plugin once, in an instance of its own: for those who test it. No breaker counts, nothing is observed. */
export function tryPlugin({ compiled, name, settings, fuel }: TrialOptions, action: ActionEnvelope): Trial {
  let machine: PluginMachine | undefined;
  const fuelUsed = (): number => Math.min(fuel, machine?.fuelUsed ?? fuel);
  try {
    machine = new PluginMachine(compiled);
    const answer = machine.call(encodeInput(JSON.stringify(settings), action), fuel);
    const verdict = readPluginVerdict(answer, name, action.phase);
    const fault = findRedactionFault(action.output ?? null, verdict.redactions ?? []);
    return { verdict: fault === undefined ? verdict : blocked(fault), breach: undefined, fuelUsed: fuelUsed() };
  } catch (breach) {
    if (!(breach instanceof PluginBreach)) throw breach;
    return { verdict: blocked(breach.message), breach, fuelUsed: fuelUsed() };
  }
}

function blocked(error: string): Verdict {
  return { decision: "block", findings: [], risk: 0, error };
}
