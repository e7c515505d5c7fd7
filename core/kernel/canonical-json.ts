import canonicalize from "canonicalize";
import type { Json } from "./json.ts";

/**
 * RFC 8785 text of a value: keys sorted by UTF-16 code units, ECMAScript numbers, no white space.
 * Throws for what JSON cannot say: undefined, NaN, Infinity, lone surrogates.
 */
export function canonicalJson(value: Json): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("canonicalJson: expected a JSON value, got undefined");
  return text;
}
