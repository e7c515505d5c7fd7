import type { Json } from "./json.ts";

/**
 * RFC 8785 text of a value: keys sorted by UTF-16 code units, ECMAScript numbers, no white space. Members that are
 * undefined are left out. Throws TypeError for what else JSON cannot say (undefined, NaN, Infinity, lone surrogates).
 * Depth is the caller's promise.
 */
export function canonicalJson(value: Json): string {
  if (typeof value === "string") return writeString(value);
  if (typeof value === "number") return writeNumber(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object") throw new TypeError(`canonicalJson: expected a JSON value, got ${typeof value}`);
  return Array.isArray(value) ? writeArray(value) : writeObject(value as { readonly [key: string]: Json });
}

// By hand, because several texts a call are hashed: a generic serialiser took twice as long. A property test compares.

function writeArray(items: readonly Json[]): string {
  let text = "[";
  let separator = "";
  for (const item of items) {
    text += separator + canonicalJson(item);
    separator = ",";
  }
  return `${text}]`;
}

function writeObject(members: { readonly [key: string]: Json | undefined }): string {
  let text = "{";
  let separator = "";
  for (const key of Object.keys(members).sort()) {
    const member = members[key];
    if (member === undefined) continue;
    text += `${separator}${writeString(key)}:${canonicalJson(member)}`;
    separator = ",";
  }
  return `${text}}`;
}

function writeString(text: string): string {
  if (!text.isWellFormed()) throw new TypeError("canonicalJson: expected well-formed text, got a lone surrogate");
  return JSON.stringify(text);
}

function writeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`canonicalJson: expected a finite number, got ${value}`);
  return String(value);
}
