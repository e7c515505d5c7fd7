import { type ActionEnvelope, withoutHistory } from "../action/envelope.ts";
import { PluginBreach } from "./breach.ts";

/** The module that the plugin's imports name. */
export const abiModule = "extism:host/env";

type ValueName = "i32" | "i64";

/** One function a plugin may import: the types it takes and answers with. */
interface AbiFunction {
  readonly params: readonly ValueName[];
  readonly results: readonly ValueName[];
}

/** What the host's side of the ABI is written against. */
export type AbiName =
  | "input_length"
  | "input_load_u8"
  | "input_load_u64"
  | "output_set"
  | "error_set"
  | "alloc"
  | "free"
  | "length"
  | "load_u8"
  | "load_u64"
  | "store_u8"
  | "store_u64"
  | "log_debug"
  | "log_info"
  | "log_warn"
  | "log_error";

const offset = ["i64"] as const;
const none = [] as const;

/**
 * Everything a plugin without capabilities may call: its input, its output, and memory that the host lends it for one
 * call. No clock, no randomness, no variables that outlive a call, no network.
 */
export const abiFunctions: Readonly<Record<AbiName, AbiFunction>> = {
  input_length: { params: none, results: offset },
  input_load_u8: { params: offset, results: ["i32"] },
  input_load_u64: { params: offset, results: offset },
  output_set: { params: ["i64", "i64"], results: none },
  error_set: { params: offset, results: none },
  alloc: { params: offset, results: offset },
  free: { params: offset, results: none },
  length: { params: offset, results: offset },
  load_u8: { params: offset, results: ["i32"] },
  load_u64: { params: offset, results: offset },
  store_u8: { params: ["i64", "i32"], results: none },
  store_u64: { params: ["i64", "i64"], results: none },
  log_debug: { params: offset, results: none },
  log_info: { params: offset, results: none },
  log_warn: { params: offset, results: none },
  log_error: { params: offset, results: none },
};

/** The function of the ABI by its name, or undefined for a name that is not of it. */
export function abiFunction(name: string): AbiFunction | undefined {
  return Object.hasOwn(abiFunctions, name) ? abiFunctions[name as AbiName] : undefined;
}

/** What a plugin exports: `evaluate`, without parameters, answering 0 where it answered at all. */
export const entryPoint = "evaluate";
/** Run once at load, where the module has it. */
export const initializer = "_initialize";
/** Asked once at load whether the settings fit together, where the module has it; without parameters, answering 0. */
export const settingsCheck = "validate_settings";
/** All that the host calls. */
export const entries: readonly string[] = [entryPoint, initializer, settingsCheck];

const maxInput = 4_194_304;
const encoder = new TextEncoder();

/** The JSON of the action that is judged now: every plugin is asked with the same, in one turn. Actions do not change. */
let written: { readonly action: ActionEnvelope; readonly json: string } | undefined;

/** What a plugin is asked with: its settings, which are JSON already, and the action. In memory of its own. */
export function encodeInput(settings: string, action: ActionEnvelope): Uint8Array {
  if (written?.action !== action) written = { action, json: JSON.stringify(withoutHistory(action)) };
  const input = encoder.encode(`{"settings":${settings},"action":${written.json}}`);
  if (input.length <= maxInput) return input;
  throw new PluginBreach("input_cap", `expected an action of at most ${maxInput} bytes`);
}
