import { PluginFault } from "./fault.ts";

/**
 * Reads the output of `validate_settings`. Throws RangeError with the plugin's message where it refuses its settings.
 */
export function checkSettings(answer: Uint8Array): void {
  const { valid, message } = parse(answer);
  if (valid === true && message === undefined) return;
  if (valid === false && typeof message === "string" && message !== "") {
    throw new RangeError(`the plugin refuses its settings: ${message}`);
  }
  throw new PluginFault("malformed_verdict", "expected `valid`, and a `message` where it refuses its settings");
}

function parse(answer: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return { ...JSON.parse(new TextDecoder().decode(answer)) };
  } catch (cause) {
    throw new PluginFault("malformed_verdict", "expected JSON", { cause });
  }
}
