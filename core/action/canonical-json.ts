import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import type { Json } from "./json.ts";

/**
 * RFC 8785 text of a value: keys sorted by UTF-16 code units, ECMAScript numbers, no white space.
 * Throws for values outside JSON: undefined, NaN, Infinity, lone surrogates.
 */
export function canonicalJson(value: Json): string {
  if (isOrdered(value)) return JSON.stringify(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("canonicalJson: expected a JSON value, got undefined");
  return text;
}

/**
 * Returns whether the engine's own serialiser, which is several times faster, prints the canonical text: the keys are in
 * order already, and JSON can represent the whole value.
 */
function isOrdered(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return value === null || typeof value === "boolean";
  if (Array.isArray(value)) {
    for (const member of value) if (!isOrdered(member)) return false;
    return true;
  }
  let before = "";
  for (const [key, member] of Object.entries(value)) {
    if (key < before || !key.isWellFormed() || !isOrdered(member)) return false;
    before = key;
  }
  return true;
}

/** SHA-256 of the bytes (a string counts as UTF-8), in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** SHA-256 in the form that names a content: `sha256:<hex>`. */
export function contentDigest(data: string | Uint8Array): string {
  return `sha256:${sha256Hex(data)}`;
}
