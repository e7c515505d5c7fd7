import { readInput, writeOutput } from "./exchange";
import { Value } from "./value";
import { Writer } from "./writer";

/** Says what is wrong with settings that the manifest's schema lets through; empty where they are right. */
export type SettingsCheck = (settings: Value) => string;

let settingsCheck: SettingsCheck | null = null;

/** Says how this plugin checks its settings. Once, at the top of `index.ts`. */
export function defineSettingsCheck(check: SettingsCheck): void {
  settingsCheck = check;
}

/** What the gateway calls once, at load: `export { validate_settings } from "agent-governance-sdk/assembly/settings"`. */
export function validate_settings(): i32 {
  const input = readInput();
  const check = settingsCheck;
  // A trap, and the plugin is not loaded.
  if (check === null) return unreachable();
  const fault = check(new Value(input.from, input.to, "").get("/settings"));
  const writer = new Writer();
  if (fault.length === 0) writer.raw('{"valid":true}');
  else writer.raw('{"valid":false,"message":').message(fault).raw("}");
  writeOutput(writer.written);
  return 0;
}
