import { createHash, hash } from "node:crypto";
import { isLarge, type Json, type JsonObject } from "./json.ts";
import { type JsonForm, jsonPieces, textPieces } from "./json-pieces.ts";
import type { Turns } from "./turns.ts";

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

const canonicalForm: JsonForm = { write: canonicalJson, names: (value) => Object.keys(value).sort() };

/** Yields the canonical text of a value piece by piece: of a large value it is not in memory as a whole. Throws as `canonicalJson` does. */
function canonicalPieces(value: Json): Generator<string> {
  return jsonPieces(value, canonicalForm);
}

/** Characters from which on a text is hashed in pieces. */
const maxAtOnce = 65_536;

/** SHA-256 of the bytes (a string counts as UTF-8), in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return typeof data === "string" && data.length > maxAtOnce ? digestOf(textPieces(data)) : hash("sha256", data, "hex");
}

function digestOf(pieces: Iterable<string>): string {
  const digest = createHash("sha256");
  for (const piece of pieces) digest.update(piece);
  return digest.digest("hex");
}

/** SHA-256 (lower-case hex) of the RFC 8785 text of a value. Throws as `canonicalJson` does. */
export function canonicalSha256(value: Json): string {
  return isLarge(value) ? digestOf(canonicalPieces(value)) : sha256Hex(canonicalJson(value));
}

/** The same, in turns. */
export async function canonicalSha256InTurns(value: Json, turns: Turns): Promise<string> {
  const digest = createHash("sha256");
  await turns.each(canonicalPieces(value), (piece) => digest.update(piece));
  return digest.digest("hex");
}

/** SHA-256 in the form that names a content: `sha256:<hex>`. */
export function contentDigest(data: string | Uint8Array): string {
  return `sha256:${sha256Hex(data)}`;
}
