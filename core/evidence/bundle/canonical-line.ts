import { isUtf8 } from "node:buffer";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { Json } from "../../kernel/json.ts";
import { Breach, type BreachPlace, type BundlePart } from "./breach.ts";
import type { Shape } from "./shape.ts";

/** Levels of nesting: beyond it, two parsers may fail in two ways. */
const deepest = 128;

/**
 * Reads JSON that has only one spelling: its bytes are the RFC 8785 text of what they say. So no member is read twice,
 * and no two readers see two things. Throws Breach `malformed`, `not_canonical` or `bad_schema`. The caller vouches that `T` says no more than `shape`.
 */
export function readCanonicalJson<T>(bytes: Uint8Array, file: BundlePart, shape: Shape): T {
  const text = readText(bytes, { file });
  const value = parse(text, { file });
  if (!isCanonical(value, text)) throw new Breach("not_canonical", { file });
  if (!shape(value)) throw new Breach("bad_schema", { file });
  return value as T;
}

/** Throws Breach `malformed` for what is not UTF-8. */
function readText(bytes: Uint8Array, place: BreachPlace): string {
  if (!isUtf8(bytes)) throw new Breach("malformed", place);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

function parse(text: string, place: BreachPlace): Json {
  if (depthOf(text) > deepest) throw new Breach("malformed", place);
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Breach("malformed", place);
  }
}

function isCanonical(value: Json, text: string): boolean {
  try {
    return hasPlainNumbers(value) && canonicalJson(value) === text;
  } catch {
    return false; // says what RFC 8785 cannot: an overflowing number, a lone surrogate
  }
}

/** Integers of at most 15 digits: every language reads and prints these alike. */
function hasPlainNumbers(value: Json): boolean {
  if (typeof value === "number") return Number.isSafeInteger(value) && String(value).length < 16;
  return typeof value !== "object" || value === null || Object.values(value).every(hasPlainNumbers);
}

/** The deepest nesting, found before anything is built. Texts that are no JSON get some number. */
function depthOf(text: string): number {
  let [depth, most, inString] = [0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') inString = !inString;
    else if (inString) at += sign === "\\" ? 1 : 0;
    else if (sign === "[" || sign === "{") most = Math.max(most, ++depth);
    else if (sign === "]" || sign === "}") depth--;
  }
  return most;
}
