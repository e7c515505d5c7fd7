import type { ActionEnvelope } from "../kernel/envelope.ts";
import { PluginBreach } from "./breach.ts";

const largestInput = 4_194_304;

/** What a plugin reads: its settings, which are JSON text already, and the action. Throws PluginBreach beyond 4 MiB. */
export function encodeInput(settings: string, action: ActionEnvelope): Uint8Array {
  const input = new TextEncoder().encode(`{"settings":${settings},"action":${JSON.stringify(action)}}`);
  if (input.length <= largestInput) return input;
  throw new PluginBreach("input_cap", `expected an action of at most ${largestInput} bytes`);
}
