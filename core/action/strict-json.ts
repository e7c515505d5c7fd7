import { isUtf8 } from "node:buffer";
import { GatewayError } from "./error.ts";
import type { Json, JsonObject } from "./json.ts";
import { DuplicateMember, JsonParts, PartFault } from "./json-parts.ts";
import { bytePieces } from "./json-pieces.ts";
import type { Turns } from "./turns.ts";

export interface JsonBounds {
  readonly depth: number;
  /** Members of objects and items of arrays together; an empty object or array counts once more. */
  readonly nodes: number;
  /** Members of one object, where fewer than nodes: of tens of thousands, each look at them all takes milliseconds. */
  readonly members?: number;
  /** UTF-16 code units of one string. */
  readonly stringLength: number;
  /**
   * `exact`: what a double cannot hold and NUL are refused (for what is judged and passed on).
   * `tolerant`: numbers are read as the nearest double and NUL is kept, as any JavaScript client would (for answers).
   */
  readonly reader: "exact" | "tolerant";
}

const quote = 0x22;
const backslash = 0x5c;
const minus = 0x2d;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const openBrace = 0x7b;
const closeBracket = 0x5d;
const closeBrace = 0x7d;

/**
 * Reads one JSON text, as bytes or decoded already, so that two readers cannot disagree about it.
 * Refuses invalid UTF-8, a BOM, NUL, lone surrogates, duplicate keys, negative zero and numbers a double cannot
 * hold (MALFORMED_JSON), and what is too deep, too wide or too long (JSON_BOUND) before building it.
 * `__proto__` and its like are plain members. The cost is linear in the length, whatever the text.
 */
export function parseStrictJson(data: Uint8Array | string, bounds: JsonBounds): Json {
  if (typeof data !== "string" && !isUtf8(data)) throw notUtf8();
  const text =
    typeof data === "string" ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
  const { members } = scanText(text, bounds, false);
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (cause) {
    throw fullFault(text, bounds, syntaxFault(cause as SyntaxError));
  }
  // Of two members with one name `JSON.parse` keeps the last: fewer are left than were written.
  if (members !== countMembers(value)) throw fullFault(text, bounds, "duplicate key");
  return value;
}

/** Characters from which on a text is read in several turns, and of which so many are scanned between two looks at whether one is over. */
export const longText = 65_536;

/** Reads a decoded text as `parseStrictJson` does, from the next turn on: a long one in parts, over several turns. */
export async function parseJsonInTurns(text: string, bounds: JsonBounds, turns: Turns): Promise<Json> {
  await turns.next();
  if (text.length < longText) return parseStrictJson(text, bounds);
  const { members, marks, at } = await scanInTurns(text, bounds, false, turns);
  let fault = at < text.length ? `unexpected character at offset ${at}` : "unexpected end";
  if (members !== -1) {
    try {
      const { value, count } = await buildInTurns(new JsonParts(text, marks ?? []), turns);
      if (count === members) return value;
      fault = "duplicate key";
    } catch (cause) {
      if (cause instanceof PartFault) fault = syntaxFault(cause.fault, cause.shift);
      else if (cause instanceof DuplicateMember) fault = "duplicate key";
      else throw cause;
    }
  }
  await turns.next();
  await scanInTurns(text, bounds, true, turns);
  throw new GatewayError("MALFORMED_JSON", fault);
}

/** Returns a value with the number of members in all its objects, as far as no two have one name in different parts. */
async function buildInTurns(parts: JsonParts, turns: Turns): Promise<{ readonly value: Json; readonly count: number }> {
  const building = parts.build();
  let count = 0;
  for (let step = building.next(); ; step = building.next()) {
    if (step.done === true) return { value: step.value, count };
    const [part, units] = step.value;
    count += countMembers(part);
    await turns.spend(units);
  }
}

/** Returns the text of bytes, for `parseStrictJson`. Rejects with MALFORMED_JSON where they are no UTF-8. */
export async function decodeJsonInTurns(bytes: Uint8Array, turns: Turns): Promise<string> {
  let text = "";
  await turns.each(decodedPieces(bytes), (piece) => {
    text += piece;
  });
  return text;
}

function* decodedPieces(bytes: Uint8Array): Generator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    for (const piece of bytePieces(bytes)) yield decoder.decode(piece, { stream: true });
    yield decoder.decode();
  } catch (cause) {
    throw notUtf8(cause);
  }
}

function notUtf8(cause?: unknown): GatewayError {
  return new GatewayError("MALFORMED_JSON", "expected UTF-8, got invalid bytes", { cause });
}

/** Returns the error for a text that is refused: what a scan of its strings finds, else `otherwise`. */
function fullFault(text: string, bounds: JsonBounds, otherwise: string): GatewayError {
  try {
    scanText(text, bounds, true);
  } catch (fault) {
    return GatewayError.from(fault);
  }
  return new GatewayError("MALFORMED_JSON", otherwise);
}

/** The offset of a syntax error, moved by `shift`. The engine's message differs between versions and quotes the text, maybe a secret. */
function syntaxFault(error: SyntaxError, shift = 0): string {
  if (/end of JSON/.test(error.message)) return "unexpected end";
  const offset = /position (\d+)/.exec(error.message)?.[1];
  return offset === undefined ? "unexpected character" : `unexpected character at offset ${Number(offset) + shift}`;
}

/** Returns the number of members in all objects of a value. Nothing parsed inherits a member that is enumerable. */
function countMembers(value: Json): number {
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

/** The state of one scan. */
interface Scan {
  readonly text: string;
  readonly bounds: JsonBounds;
  /** One entry a level: the members of its object so far, with the one that is read, or of its array, below zero. */
  readonly open: number[];
  /** The offsets of brackets, braces and commas; null where nobody asks for them. */
  marks: number[] | null;
  /** The keys of each level so far; null where duplicates are not looked for. */
  readonly keys: Set<string>[] | null;
  nodes: number;
  /** Members of objects so far; -1 where the text is not JSON. */
  members: number;
  /** The offset of the next token, or of the first that may not stand there. */
  at: number;
  /** The token that may come next. */
  expected: "value" | "key" | "colon" | "comma";
  /** The place of the first suspect escape behind what was read; infinite where there is none before `searched`. */
  suspect: number;
  searched: number;
}

/**
 * Finds what `JSON.parse` lets through, but for duplicate keys. Runs first, so the size is bounded before anything is
 * built. Counts the members, or -1 where the order of tokens is not that of JSON, which is left for `JSON.parse` to name: no more
 * is read of it than `JSON.parse` would. Its strings, numbers and literals may be none. `isFull`: reads every string, and finds
 * duplicate keys and bad escapes too. `end`: the offset behind which no token begins that is read now; `scan` is then passed again.
 */
function scanText(
  text: string,
  bounds: JsonBounds,
  isFull: boolean,
  end: number = text.length,
  scan: Scan = {
    text,
    bounds,
    open: [],
    marks: null,
    keys: isFull ? [] : null,
    nodes: 0,
    members: 0,
    at: 0,
    expected: "value",
    suspect: Number.POSITIVE_INFINITY,
    searched: 0,
  },
): Scan {
  if (text.charCodeAt(0) === 0xfeff) throw new GatewayError("MALFORMED_JSON", "expected no byte order mark");
  while (scan.at < end && scan.members !== -1) {
    const next = scanToken(scan, text.charCodeAt(scan.at), scan.at);
    if (next === -1) scan.members = -1;
    else scan.at = next;
  }
  return scan;
}

/** Scans a whole text as `scanText` does, and returns in a turn behind that. With the places of marks, unless `isFull`. */
async function scanInTurns(text: string, bounds: JsonBounds, isFull: boolean, turns: Turns): Promise<Scan> {
  const scan = scanText(text, bounds, isFull, 0);
  if (!isFull) scan.marks = [];
  while (scan.at < text.length && scan.members !== -1) {
    const { at } = scan;
    scanText(text, bounds, isFull, Math.min(at + longText, text.length), scan);
    await turns.spend(scan.at - at);
  }
  await turns.next();
  if (scan.open.length > 0 || scan.expected !== "comma") scan.members = -1;
  return scan;
}

/** Scans the token or the white space that begins at `at`. Returns the offset behind it; -1 where it may not stand there. */
function scanToken(scan: Scan, code: number, at: number): number {
  if (code === quote) return scanString(scan, at);
  if (code === colon) {
    if (scan.expected !== "colon") return -1;
    scan.expected = "value";
    scan.members++;
    return at + 1;
  }
  if (code === comma) {
    if (scan.expected !== "comma" || scan.open.length === 0) return -1;
    countNode(scan, at, scan.open.length - 1);
    scan.marks?.push(at);
    scan.expected = (scan.open.at(-1) ?? 0) > 0 ? "key" : "value";
    return at + 1;
  }
  if (code === openBrace || code === openBracket || code === closeBrace || code === closeBracket) {
    return scanBracket(scan, code, at);
  }
  if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) return endOfBlank(scan.text, at);
  return scan.expected === "value" ? scanScalar(scan, code, at) : -1;
}

/** Scans a bracket or a brace. One that closes follows a whole value, unless what it closes is empty. */
function scanBracket(scan: Scan, code: number, at: number): number {
  const { bounds, open } = scan;
  const isObject = code === openBrace || code === closeBrace;
  const first = isObject ? "key" : "value";
  if (code === openBrace || code === openBracket) {
    if (scan.expected !== "value") return -1;
    countNode(scan, at, -1);
    if (open.push(isObject ? 1 : -1) > bounds.depth) {
      throw new GatewayError("JSON_BOUND", `expected at most ${bounds.depth} levels, got more at offset ${at}`);
    }
    scan.keys?.push(new Set());
    scan.expected = first;
  } else {
    const count = open.pop();
    if (count === undefined || count > 0 !== isObject) return -1;
    const isEmpty = scan.expected === first && Math.abs(count) === 1;
    if (scan.expected !== "comma" && !isEmpty) return -1;
    scan.keys?.pop();
    scan.expected = "comma";
  }
  scan.marks?.push(at);
  return at + 1;
}

/** Counts the object, the array or (for a comma) the member or item that begins here; `level`: that which a comma stands in, else -1. */
function countNode(scan: Scan, at: number, level: number): void {
  const { bounds, open } = scan;
  if (++scan.nodes > bounds.nodes) throw tooWide(`${bounds.nodes} members and items`, at);
  const count = open[level];
  if (count === undefined) return;
  if (count === bounds.members) throw tooWide(`${count} members in an object`, at);
  open[level] = count > 0 ? count + 1 : count - 1;
}

function tooWide(allowed: string, at: number): GatewayError {
  return new GatewayError("JSON_BOUND", `expected at most ${allowed}, got more at offset ${at}`);
}

const blank = /[ \t\n\r]*/y;

/** White space is nearly always one character, and may be megabytes. */
function endOfBlank(text: string, at: number): number {
  if (text.charCodeAt(at + 1) > 0x20) return at + 1;
  blank.lastIndex = at;
  blank.test(text);
  return blank.lastIndex;
}

/** Scans the string that opens at `start`. */
function scanString(scan: Scan, start: number): number {
  const { text, bounds, expected } = scan;
  const isKey = expected === "key";
  if (!isKey && expected !== "value") return -1;
  let end = start;
  for (let slashes = 1; slashes % 2 === 1; ) {
    end = text.indexOf('"', end + 1);
    if (end === -1) throw new GatewayError("MALFORMED_JSON", `unterminated string at offset ${start}`);
    slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
  }
  // Each part of the text is searched once.
  if (scan.suspect < start || scan.searched < end) {
    scan.searched = Math.max(end, start + longText);
    const found = text.slice(start, scan.searched).search(suspectEscape);
    scan.suspect = found === -1 ? Number.POSITIVE_INFINITY : start + found;
  }
  const isSuspect = end - start - 1 > bounds.stringLength || scan.suspect < end;
  if (isSuspect || scan.keys !== null) checkString(scan, start, end, isKey ? scan.keys?.at(-1) : undefined);
  scan.expected = isKey ? "colon" : "comma";
  return end + 1;
}

/** The escapes that alone make a lone surrogate or NUL of a text that is UTF-8. */
const suspectEscape = /\\u(?:[dD]|0000)/;

/** Checks a string as it is meant. `keys`: those of its object so far, where it is a key. */
function checkString({ text, bounds }: Scan, start: number, end: number, keys: Set<string> | undefined): void {
  if (end - start - 1 > bounds.stringLength * 6) throw tooLong(bounds, start);
  const raw = text.slice(start + 1, end);
  const value = raw.includes("\\") ? readEscapes(raw, start, bounds) : raw;
  if (value.length > bounds.stringLength) throw tooLong(bounds, start);
  if (keys?.has(value) === true) {
    throw new GatewayError("MALFORMED_JSON", `duplicate key \`${value.slice(0, 64)}\` at offset ${start}`);
  }
  keys?.add(value);
}

function readEscapes(raw: string, start: number, bounds: JsonBounds): string {
  let value: string;
  try {
    value = JSON.parse(`"${raw}"`) as string;
  } catch (cause) {
    throw new GatewayError("MALFORMED_JSON", `bad escape in the string at offset ${start}`, { cause });
  }
  if (!value.isWellFormed())
    throw new GatewayError("MALFORMED_JSON", `lone surrogate in the string at offset ${start}`);
  if (bounds.reader === "exact" && value.includes("\0"))
    throw new GatewayError("MALFORMED_JSON", `NUL in the string at offset ${start}`);
  return value;
}

function tooLong({ stringLength }: JsonBounds, start: number): GatewayError {
  return new GatewayError(
    "JSON_BOUND",
    `expected strings of at most ${stringLength} characters, got a longer one at offset ${start}`,
  );
}

/** 1 for the codes of digits, 2 for those of `.`, `e`, `E`, `+` and `-`. */
const numberPart = new Uint8Array(128);
numberPart.fill(1, 0x30, 0x3a);
for (const part of ".eE+-") numberPart[part.charCodeAt(0)] = 2;
/** Integers of so many digits are exact. */
const exactDigits = 15;

/** Scans a number, or `true`, `false` or `null`. */
function scanScalar(scan: Scan, code: number, start: number): number {
  const { text, bounds } = scan;
  scan.expected = "comma";
  if (code !== minus && numberPart[code] !== 1) {
    const literal = code === 0x74 ? "true" : code === 0x66 ? "false" : "null";
    return text.startsWith(literal, start) ? start + literal.length : -1;
  }
  let end = start;
  while (numberPart[text.charCodeAt(end)] === 1) end++;
  const isExact = end > start && end - start <= exactDigits;
  const digitsEnd = end;
  while ((numberPart[text.charCodeAt(end)] ?? 0) > 0) end++;
  if (bounds.reader === "exact" && !(isExact && end === digitsEnd)) checkNumber(text.slice(start, end), start);
  return end;
}

/** Throws MALFORMED_JSON for a number that a double does not hold exactly. What is no number is left for `JSON.parse`. */
function checkNumber(token: string, start: number): void {
  const value = Number(token);
  if (Number.isNaN(value)) return;
  const vanished = value === 0 && /^-?[0.]*[1-9]/.test(token);
  if (vanished || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    throw new GatewayError(
      "MALFORMED_JSON",
      `number \`${token.slice(0, 40)}\` at offset ${start} does not fit a double exactly`,
    );
  }
  if (Object.is(value, -0)) throw new GatewayError("MALFORMED_JSON", `negative zero at offset ${start}`);
}
