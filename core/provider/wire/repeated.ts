import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";

/** Members in which providers spell an answer, or alternatives to it, once more: as tokens, their bytes or numbers. */
const repeating: ReadonlySet<string> = new Set([
  "logprobs",
  "top_logprobs",
  "prompt_logprobs",
  "token_ids",
  "prompt_token_ids",
]);
/** Random letters and digits that hide the length of a chunk: too few for what policies look for, and no number. */
export const padding = "obfuscation";
const plainPadding = /^(?!\d+$)[A-Za-z0-9]{0,16}$/;
/** Arguments of a tool, whose members are the tool's own. */
const foreign: ReadonlySet<string> = new Set(["input", "arguments"]);
/** In JSON a name may be escaped. */
const mayRepeat = /logprobs|token_ids|obfuscation|\\u/;

/** Returns false for JSON in which `withoutRepeats` changes nothing. */
export function mayHoldRepeats(json: string): boolean {
  return mayRepeat.test(json);
}

/**
 * Returns an answer, or an event of one, without what spells its text once more in another form, which policy cannot judge
 * or redact as that text. The same object where it has none.
 */
export function withoutRepeats(answer: JsonObject): JsonObject {
  return strip(answer) as JsonObject;
}

function strip(value: Json): Json {
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : stripList(value);
  return isJsonObject(value) ? stripObject(value) : value;
}

function stripList(items: readonly Json[]): Json {
  const stripped = items.map(strip);
  return stripped.every((item, index) => item === items[index]) ? items : stripped;
}

function stripObject(object: JsonObject): JsonObject {
  let changed: Record<string, Json> | undefined;
  for (const [name, value] of Object.entries(object)) {
    const kept = stripMember(name, value);
    if (kept === value) continue;
    changed ??= { ...object };
    if (kept === undefined) delete changed[name];
    else changed[name] = kept;
  }
  return changed ?? object;
}

/** Clients expect the member: an empty list, or null; undefined for padding that may be something else. */
function stripMember(name: string, value: Json): Json | undefined {
  if (name === padding) return typeof value === "string" && plainPadding.test(value) ? value : undefined;
  if (foreign.has(name)) return value;
  if (!repeating.has(name)) return strip(value);
  if (Array.isArray(value)) return value.length === 0 ? value : [];
  return isJsonObject(value) ? null : value;
}
