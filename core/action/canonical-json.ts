import { createHash, hash } from "node:crypto";
import type { Json, JsonObject } from "./json.ts";

/**
 * RFC 8785 text of a value: keys sorted by UTF-16 code units, ECMAScript numbers, no white space.
 * Throws for values outside JSON: undefined, NaN, Infinity, lone surrogates.
 */
export function canonicalJson(value: Json): string {
  return isOrdered(value) ? JSON.stringify(value) : writeValue(value);
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
  for (const key of Object.keys(value)) {
    if (key < before || !key.isWellFormed() || !isOrdered((value as JsonObject)[key])) return false;
    before = key;
  }
  return true;
}

/** The engine prints keys in its own order, so only texts and numbers are left to it. */
function writeValue(value: Json | undefined): string {
  if (typeof value === "string") {
    if (value.isWellFormed()) return JSON.stringify(value);
    throw new TypeError("canonicalJson: expected well-formed text, got a lone surrogate");
  }
  if (typeof value === "boolean" || value === null || Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object") throw new TypeError(`canonicalJson: expected a JSON value, got ${String(value)}`);
  let text = "";
  if (Array.isArray(value)) {
    for (const member of value as readonly Json[]) text += text === "" ? writeValue(member) : `,${writeValue(member)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    const member = (value as JsonObject)[key];
    if (member !== undefined) text += `${text === "" ? "" : ","}${writeValue(key)}:${writeValue(member)}`;
  }
  return `{${text}}`;
}

/** SHA-256 of the bytes (a string counts as UTF-8), in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  if (typeof data !== "string" || data.length <= maxPiece) return hash("sha256", data, "hex");
  const digest = createHash("sha256");
  for (const piece of textPieces(data)) digest.update(piece);
  return digest.digest("hex");
}

const maxPiece = 65_536;

/**
 * Cuts a text into pieces of which the bytes, one after another, are those of the text: a long one need not be in memory
 * as bytes too, where fresh megabytes cost more time than what is done with them.
 */
export function* textPieces(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    const to = from + maxPiece;
    // A pair of surrogates is one character.
    const end = to < text.length && isHighSurrogate(text.charCodeAt(to - 1)) ? to - 1 : to;
    yield text.slice(from, end);
    from = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** SHA-256 in the form that names a content: `sha256:<hex>`. */
export function contentDigest(data: string | Uint8Array): string {
  return `sha256:${sha256Hex(data)}`;
}
