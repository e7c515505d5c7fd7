import { type ActionEnvelope, withoutHistory } from "../kernel/envelope.ts";
import { PluginBreach } from "./breach.ts";

const largestInput = 4_194_304;
const encoder = new TextEncoder();

/** The JSON of the action that is judged now: every plugin is asked with the same, in one turn. Actions do not change. */
let written: { readonly action: ActionEnvelope; readonly json: string } | undefined;

/** What a plugin is asked with: its settings, which are JSON already, and the action. In memory of its own. */
export function encodeInput(settings: string, action: ActionEnvelope): Uint8Array {
  if (written?.action !== action) written = { action, json: JSON.stringify(withoutHistory(action)) };
  const input = encoder.encode(`{"settings":${settings},"action":${written.json}}`);
  if (input.length <= largestInput) return input;
  throw new PluginBreach("input_cap", `expected an action of at most ${largestInput} bytes`);
}
