/** A JSON value as this project handles it: immutable, without `undefined`. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** True for a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** False for a member that is absent, or null as clients and providers write an absent one. */
export function isGiven(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

/**
 * Freezes a value and everything in it, and returns it.
 * Depth is the caller's promise: parsed input has been bounded by `parseStrictJson`.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) for (const member of value) deepFreeze(member);
  else for (const name in value) deepFreeze(value[name]);
  return Object.freeze(value);
}

const usualUnits = 32_768;
/** Values that were found large: of an object with tens of thousands of members, each look takes milliseconds. */
const knownLarge = new WeakSet<object>();
/** Units of a member or an item beside those of its text. */
const nodeUnits = 16;

/**
 * Returns true for a value that takes milliseconds to serialise: with some two thousand members and items, or so much text;
 * `maxUnits` of text, 16 for a member or an item. Looks at no more of it than that.
 */
export function isLarge(value: Json, maxUnits: number = usualUnits): boolean {
  const open: (Json | undefined)[] = [value];
  let units = 0;
  while (open.length > 0 && units <= maxUnits) {
    const next = open.pop();
    if (typeof next === "string") units += next.length;
    if (typeof next !== "object" || next === null) continue;
    if (maxUnits <= usualUnits && knownLarge.has(next)) return true;
    for (const name in next) {
      open.push((next as JsonObject)[name]);
      units += name.length + nodeUnits;
      if (units > maxUnits) break;
    }
  }
  if (units <= maxUnits) return false;
  if (maxUnits >= usualUnits && typeof value === "object" && value !== null) knownLarge.add(value);
  return true;
}

/** Returns the number of members in all objects of a value. Nothing parsed inherits a member that is enumerable. */
export function countMembers(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object") count += countMembers(item);
    return count;
  }
  const members = value as JsonObject;
  for (const key in members) {
    const member = members[key] as Json;
    count += typeof member === "object" ? 1 + countMembers(member) : 1;
  }
  return count;
}

/** Parses a text that a gateway stored; null where it is not JSON. */
export function parseKept(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

const hex = Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
/** Code units from here on are escaped; JSON itself escapes those below the space in its texts. */
const firstEscaped = 0x7f;
const escapeLength = "\\uffff".length;

/**
 * A value as JSON in printable ASCII: every other character is escaped, so the text is inert wherever it is shown, and
 * reads back as the same value. Linear, never cut.
 */
export function asciiJson(value: unknown): string {
  return escapeJson(JSON.stringify(value));
}

/** The same for a text that is JSON already. Line ends between its values stay. */
export function escapeJson(text: string): string {
  return /^[\n -~]*$/.test(text) ? text : escapeText(text);
}

/** A value as JSON on one line, for readers too that take U+0085, U+2028 or U+2029 for the end of one. */
export function lineJson(value: unknown): string {
  return lineText(JSON.stringify(value));
}

/** The same for a text that is JSON already, or a part of one. */
export function lineText(text: string): string {
  if (!/[\u0085\u2028\u2029]/.test(text)) return text;
  return text.replaceAll("\u0085", "\\u0085").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

/** A callback a character is too slow for hostile megabytes. */
function escapeText(text: string): string {
  const bytes = Buffer.allocUnsafe(escapedLength(text));
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < firstEscaped) bytes[length++] = unit;
    else {
      bytes[length++] = 0x5c; // backslash
      bytes[length++] = 0x75; // u
      for (let shift = 12; shift >= 0; shift -= 4) bytes[length++] = hex[(unit >> shift) & 15] as number;
    }
  }
  return bytes.toString("latin1");
}

function escapedLength(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) length += text.charCodeAt(at) < firstEscaped ? 1 : escapeLength;
  return length;
}
