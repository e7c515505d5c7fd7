import { readInput, writeOutput } from "./exchange";
import { Value } from "./value";
import { Writer } from "./writer";

/** Returns what is wrong with settings that fit the manifest's schema; empty where they are valid. */
export type SettingsCheck = (settings: Value) => string;

let settingsCheck: SettingsCheck | null = null;

/** Registers the check of the settings. Call once, at the top of `index.ts`. */
export function defineSettingsCheck(check: SettingsCheck): void {
  settingsCheck = check;
}

/** The export called once at load: `export { validate_settings } from "agent-governance-sdk/assembly/settings"`. */
export function validate_settings(): i32 {
  const input = readInput();
  const check = settingsCheck;
  // A trap, which refuses the plugin.
  if (check === null) return unreachable();
  const fault = check(new Value(input.from, input.to, "").get("/settings"));
  const writer = new Writer();
  if (fault.length === 0) writer.raw('{"valid":true}');
  else writer.raw('{"valid":false,"message":').message(fault).raw("}");
  writeOutput(writer.written);
  return 0;
}
