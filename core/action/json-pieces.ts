import type { Json, JsonObject } from "./json.ts";
import type { Turns } from "./turns.ts";

/** UTF-16 code units of a piece, about. */
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

/** Cuts bytes into pieces of that size: what is made of one takes the place of what was made of the last. */
export function* bytePieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += maxPiece) yield bytes.subarray(from, from + maxPiece);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** Yields what `JSON.stringify` returns, piece by piece: its long strings are in memory once, as they are in the value. */
export function jsonPieces(value: Json): Generator<string> {
  const long = new Set<Json>();
  findLong(value, long);
  return piecesOf(value, long);
}

/** The bytes of `JSON.stringify(value)`, in memory that threads share. */
export function sharedJson(value: Json): Uint8Array {
  const pieces = [...jsonPieces(value)];
  let length = 0;
  for (const piece of pieces) length += Buffer.byteLength(piece);
  const bytes = Buffer.from(new SharedArrayBuffer(length));
  let at = 0;
  for (const piece of pieces) at += bytes.write(piece, at);
  return bytes;
}

/** The same, in turns. */
export async function sharedJsonInTurns(value: Json, turns: Turns): Promise<Uint8Array> {
  const pieces: string[] = [];
  let length = 0;
  await turns.each(jsonPieces(value), (piece) => {
    pieces.push(piece);
    length += Buffer.byteLength(piece);
  });
  const bytes = Buffer.from(new SharedArrayBuffer(length));
  let at = 0;
  await turns.each(pieces, (piece) => {
    at += bytes.write(piece, at);
  });
  return bytes;
}

/** Adds each array and object that holds a long string, at whatever depth, to `long`; returns whether the value holds one. */
function findLong(value: Json | undefined, long: Set<Json>): boolean {
  if (typeof value === "string") return value.length > maxPiece;
  if (typeof value !== "object" || value === null) return false;
  let isLong = false;
  for (const name in value) if (findLong((value as JsonObject)[name], long)) isLong = true;
  if (isLong) long.add(value);
  return isLong;
}

function* piecesOf(value: Json, long: ReadonlySet<Json>): Generator<string> {
  if (typeof value === "string" && value.length > maxPiece) {
    yield '"';
    for (const piece of textPieces(value)) yield JSON.stringify(piece).slice(1, -1);
    yield '"';
    return;
  }
  if (!long.has(value)) {
    yield* textPieces(JSON.stringify(value));
    return;
  }
  const isArray = Array.isArray(value);
  let separator = isArray ? "[" : "{";
  for (const [name, member] of Object.entries(value as JsonObject)) {
    if (member === undefined) continue;
    yield isArray ? separator : `${separator}${JSON.stringify(name)}:`;
    yield* piecesOf(member, long);
    separator = ",";
  }
  yield isArray ? "]" : "}";
}
