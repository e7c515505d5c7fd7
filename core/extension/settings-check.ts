import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import { escapeHidden } from "../kernel/visible-text.ts";
import { settingsCheck } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./compiled-module.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { ModuleFault } from "./wasm/module-fault.ts";

const bounds = { depth: 2, nodes: 8, stringLength: 512, reader: "exact" } as const;

/**
 * Asks a plugin's `validate_settings` about settings that its schema lets through. Throws ModuleFault with the plugin's own
 * message where it refuses them, and where it does not answer `{"valid": true}` or `{"valid": false, "message": …}`.
 */
export function checkSettings(compiled: CompiledModule, settings: JsonObject, fuel: number): void {
  const { valid, message } = ask(compiled, settings, fuel);
  if (valid === true && message === undefined) return;
  if (valid !== false || typeof message !== "string" || message === "" || escapeHidden(message) !== message) {
    throw new ModuleFault(
      `expected \`${settingsCheck}\` to answer with \`valid\`, and a printable \`message\` where it refuses`,
    );
  }
  throw new ModuleFault(`the plugin refuses its settings: ${message}`);
}

function ask(compiled: CompiledModule, settings: JsonObject, fuel: number): Readonly<Record<string, Json>> {
  try {
    const input = new TextEncoder().encode(JSON.stringify({ settings }));
    const answer = parseStrictJson(new PluginMachine(compiled).call(input, fuel, settingsCheck), bounds);
    return isJsonObject(answer) && Object.keys(answer).every((key) => key === "valid" || key === "message")
      ? answer
      : {};
  } catch (error) {
    if (error instanceof GatewayError) return {};
    if (error instanceof PluginBreach) throw new ModuleFault(`\`${settingsCheck}\`: ${error.message}`);
    throw error;
  }
}
