import { type ActionEnvelope, withoutHistory } from "../action/envelope.ts";
import type { Json } from "../action/json.ts";
import { sharedJson, sharedJsonInTurns } from "../action/json-pieces.ts";
import type { Turns } from "../action/turns.ts";
import { PluginBreach } from "./breach.ts";
import { wasiModule, wasiSignatures } from "./wasi.ts";

/** The module name of the ABI's functions. */
export const abiModule = "extism:host/env";

type ValueName = "i32" | "i64";

/** The signature of a function that a plugin may import. */
export interface HostSignature {
  readonly params: readonly ValueName[];
  readonly results: readonly ValueName[];
}

const offset = ["i64"] as const;
const none = [] as const;

/**
 * The functions of the ABI that a plugin may import: input, output and memory of the host, settings and variables for
 * one call. No clock, no randomness, no state across calls.
 */
export const abiFunctions = {
  input_length: { params: none, results: offset },
  input_offset: { params: none, results: offset },
  input_load_u8: { params: offset, results: ["i32"] },
  input_load_u64: { params: offset, results: offset },
  output_set: { params: ["i64", "i64"], results: none },
  error_set: { params: offset, results: none },
  error_get: { params: none, results: offset },
  alloc: { params: offset, results: offset },
  free: { params: offset, results: none },
  length: { params: offset, results: offset },
  length_unsafe: { params: offset, results: offset },
  load_u8: { params: offset, results: ["i32"] },
  load_u64: { params: offset, results: offset },
  store_u8: { params: ["i64", "i32"], results: none },
  store_u64: { params: ["i64", "i64"], results: none },
  config_get: { params: offset, results: offset },
  var_get: { params: offset, results: offset },
  var_set: { params: ["i64", "i64"], results: none },
  log_trace: { params: offset, results: none },
  log_debug: { params: offset, results: none },
  log_info: { params: offset, results: none },
  log_warn: { params: offset, results: none },
  log_error: { params: offset, results: none },
  get_log_level: { params: none, results: ["i32"] },
} as const satisfies Readonly<Record<string, HostSignature>>;
/** The names of the ABI's functions. */
export type AbiName = keyof typeof abiFunctions;

/** The ABI's functions of the network: in a module of the JavaScript PDK alone, where calling one is a breach. */
const networkFunctions: Readonly<Record<string, HostSignature>> = {
  http_request: { params: ["i64", "i64"], results: offset },
  http_status_code: { params: none, results: ["i32"] },
  http_headers: { params: none, results: offset },
};
export const networkNames: readonly string[] = Object.keys(networkFunctions);

/** The modules of the host. */
type HostModule = typeof abiModule | typeof wasiModule;

const hostFunctions: Readonly<Record<HostModule, Readonly<Record<string, HostSignature>>>> = {
  [abiModule]: { ...abiFunctions, ...networkFunctions },
  [wasiModule]: wasiSignatures,
};

/** Returns a function that a plugin may import; undefined for unknown names. */
export function hostFunction(module: string, name: string): HostSignature | undefined {
  if (module !== abiModule && module !== wasiModule) return undefined;
  const known = hostFunctions[module];
  return Object.hasOwn(known, name) ? known[name] : undefined;
}

export function isNetworkFunction(module: string, name: string): boolean {
  return module === abiModule && networkNames.includes(name);
}

/** The export called for each action: no parameters, returns 0 on success. */
export const entryPoint = "evaluate";
/** An optional export called once at load. */
export const initializer = "_initialize";
/** An optional export called once at load where there is no initializer and no import of WASI, as Extism does. */
export const command = "_start";
/** An optional export that validates the settings once at load; no parameters, returns 0 on success. */
export const settingsCheck = "validate_settings";
/** The exports that the host calls. */
export const entries: readonly string[] = [entryPoint, initializer, command, settingsCheck];

const maxInput = 4_194_304;
const closeBrace = 0x7d;
const encoder = new TextEncoder();

/** The input of a call. It can be handed to another thread at no cost: its memory is shared. */
export interface PluginInput {
  /** The text before the action: the settings. */
  readonly head: string;
  /** The JSON of the action. */
  readonly action: Uint8Array;
}

/** The latest action: several plugins evaluate the same immutable one in turn. */
let latest: { readonly action: ActionEnvelope; readonly json: Uint8Array } | undefined;

/** Makes the input of a call from settings, which are JSON already, and an action. Throws PluginBreach where it is too large. */
export function pluginInput(settings: string, action: ActionEnvelope): PluginInput {
  if (latest?.action !== action) latest = { action, json: sharedJson(shownOf(action)) };
  return inputOf(settings, latest.json);
}

/** The same, made in turns. */
export async function pluginInputInTurns(settings: string, action: ActionEnvelope, turns: Turns): Promise<PluginInput> {
  if (latest?.action === action) return inputOf(settings, latest.json);
  const json = await sharedJsonInTurns(shownOf(action), turns);
  latest = { action, json };
  return inputOf(settings, json);
}

/** The part of an action that plugins are shown. */
function shownOf(action: ActionEnvelope): Json {
  return (action.history === undefined ? action : withoutHistory(action)) as unknown as Json;
}

function inputOf(settings: string, action: Uint8Array): PluginInput {
  const input = { head: `{"settings":${settings},"action":`, action };
  if (lengthOf(input) <= maxInput) return input;
  throw new PluginBreach("input_cap", `expected an action of at most ${maxInput} bytes`);
}

/** Returns the bytes of an input, in memory of their own: the guest may write into it. */
export function encodeInput(input: PluginInput): Uint8Array {
  const { head, action } = input;
  const bytes = new Uint8Array(lengthOf(input));
  const { written } = encoder.encodeInto(head, bytes);
  bytes.set(action, written);
  bytes[bytes.length - 1] = closeBrace;
  return bytes;
}

function lengthOf({ head, action }: PluginInput): number {
  return Buffer.byteLength(head) + action.length + 1;
}
