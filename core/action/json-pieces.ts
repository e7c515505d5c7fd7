import type { Json, JsonObject } from "./json.ts";
import type { Turns } from "./turns.ts";

/** UTF-16 code units of a piece, about. */
const maxPiece = 65_536;
/** Members and items of a piece that are written one by one: some of them take no less time than the text of a whole piece. */
const maxMembers = 2_048;

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

/** The way to make the text of a value: of what is short at once, and the members of an object in this order. */
export interface JsonForm {
  write(value: Json): string;
  names(value: JsonObject): readonly string[];
}

const usualForm: JsonForm = { write: JSON.stringify, names: Object.keys };

/**
 * Yields what `JSON.stringify` returns, piece by piece: its long strings are in memory once, as they are in the value. A piece is
 * empty where only time went by.
 */
export function* jsonPieces(value: Json, form: JsonForm = usualForm): Generator<string> {
  const long = new Set<Json>();
  yield* measure(value, { long, passed: 0 });
  yield "";
  yield* piecesOf(value, long, form);
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
export function sharedJsonInTurns(value: Json, turns: Turns): Promise<Uint8Array> {
  return bytesInTurns(jsonPieces(value), turns, (length) => Buffer.from(new SharedArrayBuffer(length)));
}

/** The bytes of `JSON.stringify(value)`, made in turns. */
export function jsonInTurns(value: Json, turns: Turns): Promise<Buffer> {
  return bytesInTurns(jsonPieces(value), turns);
}

/** The bytes of a text or of pieces, made in turns: to touch fresh memory costs more time than what is done with it. */
export async function bytesInTurns(
  data: string | Iterable<string | Uint8Array>,
  turns: Turns,
  allocate: (length: number) => Buffer = Buffer.allocUnsafeSlow,
): Promise<Buffer> {
  const pieces: (string | Uint8Array)[] = [];
  let length = 0;
  await turns.each(typeof data === "string" ? textPieces(data) : data, (piece) => {
    pieces.push(piece);
    length += Buffer.byteLength(piece);
  });
  const bytes = allocate(length);
  let at = 0;
  await turns.each(pieces, (piece) => {
    if (typeof piece === "string") bytes.write(piece, at);
    else bytes.set(piece, at);
    at += Buffer.byteLength(piece);
  });
  return bytes;
}

/** Units of a member or an item beside those of its own text: quotes, colon and comma. */
const memberUnits = 4;

interface Measuring {
  /** The arrays and objects that are no single piece. */
  readonly long: Set<Json>;
  /** Members and items that were passed. */
  passed: number;
}

/** Returns the units in an array or object, about, and adds each one that is no single piece to those that are long. */
function* measure(value: Json, measuring: Measuring): Generator<string, number> {
  if (typeof value !== "object" || value === null) return 0;
  const isArray = Array.isArray(value);
  let units = 0;
  for (const name in value) {
    const member = (value as JsonObject)[name] as Json;
    units += (isArray ? 0 : name.length) + memberUnits;
    if (typeof member === "string") units += member.length;
    else if (typeof member === "object") units += yield* measure(member, measuring);
    if (++measuring.passed % maxMembers === 0) yield "";
  }
  if (units > maxPiece) measuring.long.add(value);
  return units;
}

function* piecesOf(value: Json, long: ReadonlySet<Json>, form: JsonForm): Generator<string> {
  if (typeof value === "string") yield* stringPieces(value, form);
  else if (long.has(value)) yield* memberPieces(value as JsonObject | readonly Json[], long, form);
  else yield form.write(value);
}

function* memberPieces(
  value: JsonObject | readonly Json[],
  long: ReadonlySet<Json>,
  form: JsonForm,
): Generator<string> {
  const isArray = Array.isArray(value);
  let text = isArray ? "[" : "{";
  let separator = "";
  const names = isArray ? value.keys() : form.names(value as JsonObject);
  yield "";
  let members = 0;
  for (const name of names) {
    const member = (value as JsonObject)[name] as Json;
    if (member === undefined && !isArray) continue;
    text += isArray ? separator : `${separator}${form.write(name as string)}:`;
    separator = ",";
    const isPart = typeof member === "string" ? member.length <= maxPiece : !long.has(member);
    if (isPart) text += form.write(member);
    if (isPart && text.length < maxPiece && ++members < maxMembers) continue;
    yield text;
    text = "";
    members = 0;
    if (!isPart) yield* piecesOf(member, long, form);
  }
  yield text + (isArray ? "]" : "}");
}

function* stringPieces(value: string, form: JsonForm): Generator<string> {
  yield '"';
  for (const piece of textPieces(value)) yield form.write(piece).slice(1, -1);
  yield '"';
}
