import { isUtf8 } from "node:buffer";
import { GatewayError } from "./error.ts";
import { JoinedBytes } from "./joined-bytes.ts";
import { countMembers, type Json } from "./json.ts";
import { JsonParts, type JsonPlace, PartFault, syntaxFault } from "./json-parts.ts";
import { bytesInTurns } from "./json-pieces.ts";
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

/** A text, as bytes or decoded already. */
export type JsonData = Uint8Array | JoinedBytes | string;

const quote = 0x22;
const minus = 0x2d;
const zero = 0x30;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const letterU = 0x75;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Reads one JSON text so that two readers cannot disagree about it.
 * Refuses invalid UTF-8, a BOM, NUL, lone surrogates, duplicate keys, negative zero and numbers a double cannot
 * hold (MALFORMED_JSON), and what is too deep, too wide or too long (JSON_BOUND) before building it; offsets in what it says are
 * of bytes. `__proto__` and its like are plain members. The cost is linear in the length, whatever the text.
 */
export function parseStrictJson(data: JsonData, bounds: JsonBounds): Json {
  const scan = beginScan(data, bounds, false);
  scanTokens(scan, scan.bytes.length, 0);
  const text = typeof data === "string" ? data : scan.bytes.toString();
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (cause) {
    throw fullFault(scan, syntaxFault(cause as SyntaxError, text, 0));
  }
  // Of two members with one name `JSON.parse` keeps the last: fewer are left than were written.
  if (scan.members !== countMembers(value)) throw fullFault(scan, "duplicate key");
  return value;
}

/** Bytes from which on a text is read in several turns, and of which so many are read between two looks at whether one is over. */
export const longText = 65_536;

/** Reads a text as `parseStrictJson` does, from the next turn on: a long one `step` by step, over several turns. */
export async function parseJsonInTurns(
  data: JsonData,
  bounds: JsonBounds,
  turns: Turns,
  step: number = longText,
): Promise<Json> {
  await turns.next();
  const bytes = await wholeInTurns(data, turns);
  if (bytes.length < step) return parseStrictJson(bytes, bounds);
  const scan = beginScan(bytes, bounds, false);
  const places = await scanInTurns(scan, step, turns);
  let fault = scan.at < bytes.length ? `unexpected character at offset ${scan.at}` : "unexpected end";
  if (scan.members !== -1) {
    try {
      const parts = new JsonParts(scan.bytes);
      let built = 0;
      for (const place of places) {
        parts.take(place);
        await turns.spend(place.at - built);
        built = place.at;
      }
      const value = parts.end();
      if (parts.members === scan.members) return value;
      fault = "duplicate key";
    } catch (cause) {
      if (!(cause instanceof PartFault)) throw cause;
      fault = cause.message;
    }
  }
  await turns.next();
  await scanInTurns(beginScan(bytes, bounds, true), step, turns);
  throw new GatewayError("MALFORMED_JSON", fault);
}

/** Returns the bytes of a text, all in one. */
async function wholeInTurns(data: JsonData, turns: Turns): Promise<Uint8Array> {
  if (data instanceof Uint8Array) return data;
  if (data instanceof JoinedBytes) return data.pieces.length === 1 ? data.bytes : bytesInTurns(data.pieces, turns);
  if (!data.isWellFormed()) throw notUtf8();
  return bytesInTurns(data, turns);
}

function notUtf8(): GatewayError {
  return new GatewayError("MALFORMED_JSON", "expected UTF-8, got invalid bytes");
}

/** Returns the error for a text that is refused: what a scan of its strings finds, else `otherwise`. */
function fullFault({ bytes, bounds }: Scan, otherwise: string): GatewayError {
  try {
    scanTokens(beginScan(bytes, bounds, true), bytes.length, 0);
  } catch (fault) {
    return GatewayError.from(fault);
  }
  return new GatewayError("MALFORMED_JSON", otherwise);
}

/** The state of one scan, of which `JsonPlace` says the rest. */
interface Scan extends JsonPlace {
  readonly bytes: Buffer;
  readonly bounds: JsonBounds;
  /** The members of each level's object so far, with the one that is read, or of its array, below zero. */
  readonly counts: number[];
  readonly opened: number[];
  readonly begun: number[];
  /** The keys of each level so far; null where duplicates are not looked for. */
  readonly keys: Set<string>[] | null;
  nodes: number;
  /** Members of objects so far; -1 where the text is not JSON. */
  members: number;
  at: number;
  depth: number;
  /** The token that may come next, or that is read. */
  expected: "value" | "key" | "colon" | "comma";
  text: number;
  isInText: boolean;
  hasEscape: boolean;
  /** True if the string has one of the escapes that alone make a lone surrogate or NUL of a text that is UTF-8. */
  isSuspect: boolean;
}

/** `isFull`: reads every string, and finds duplicate keys and bad escapes too. */
function beginScan(data: JsonData, bounds: JsonBounds, isFull: boolean): Scan {
  const given = data instanceof JoinedBytes ? data.bytes : data;
  const isText = typeof given === "string";
  if (isText ? !given.isWellFormed() : !isUtf8(given)) throw notUtf8();
  const bytes = isText ? Buffer.from(given) : Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new GatewayError("MALFORMED_JSON", "expected no byte order mark");
  }
  return {
    bytes,
    bounds,
    counts: [],
    opened: [],
    begun: [],
    keys: isFull ? [] : null,
    nodes: 0,
    members: 0,
    at: 0,
    depth: 0,
    expected: "value",
    text: 0,
    isInText: false,
    hasEscape: false,
    isSuspect: false,
  };
}

/**
 * Finds what `JSON.parse` lets through, but for duplicate keys. Runs first, so the size is bounded before anything is built. Counts
 * the members, or -1 where the order of tokens is not that of JSON, which is left for `JSON.parse` to name: no more is read of it than
 * `JSON.parse` would. Its strings, numbers and literals may be none. Reads `step` bytes about, to the end of a text that began
 * before them, or until fewer than `floor` levels are open.
 */
function scanTokens(scan: Scan, step: number, floor: number): void {
  const { bytes } = scan;
  const end = Math.min(scan.at + step, bytes.length);
  const wasInText = scan.isInText;
  while (scan.at < end && scan.depth >= floor && scan.isInText === wasInText) {
    const next = wasInText ? scanText(scan, scan.at, end) : scanToken(scan, bytes[scan.at] as number, scan.at, end);
    if (next === -1) {
      scan.members = -1;
      return;
    }
    scan.at = next;
  }
}

/** Scans a whole text as `scanTokens` does, and returns in a turn behind that, with the places at which `JsonParts` divides it. */
async function scanInTurns(scan: Scan, step: number, turns: Turns): Promise<readonly JsonPlace[]> {
  const places: JsonPlace[] = [];
  let floor = 0;
  while (scan.at < scan.bytes.length && scan.members !== -1) {
    const { at } = scan;
    scanTokens(scan, step, floor);
    floor = scan.depth;
    places.push({ ...scan, opened: scan.opened.slice(0, floor), begun: scan.begun.slice(0, floor) });
    await turns.spend(scan.at - at);
  }
  await turns.next();
  if (scan.depth > 0 || scan.expected !== "comma") scan.members = -1;
  return places;
}

const nodes = "members and items";

/** Scans the token or the white space that begins at `at`. Returns the offset behind it; -1 where it may not stand there. */
function scanToken(scan: Scan, code: number, at: number, end: number): number {
  switch (code) {
    case quote:
      if (scan.expected !== "key" && scan.expected !== "value") return -1;
      scan.text = at;
      scan.isInText = true;
      scan.hasEscape = false;
      scan.isSuspect = false;
      return scanText(scan, at + 1, end);
    case colon:
      if (scan.expected !== "colon") return -1;
      scan.expected = "value";
      scan.members++;
      return at + 1;
    case comma: {
      if (scan.expected !== "comma" || scan.depth === 0) return -1;
      if (++scan.nodes > scan.bounds.nodes) throw tooMany(scan.bounds.nodes, nodes, at);
      const level = scan.depth - 1;
      const count = scan.counts[level] as number;
      if (count === scan.bounds.members) throw tooMany(count, "members in an object", at);
      scan.counts[level] = count > 0 ? count + 1 : count - 1;
      scan.begun[level] = at + 1;
      scan.expected = count > 0 ? "key" : "value";
      return at + 1;
    }
    case openBrace:
    case openBracket:
    case closeBrace:
    case closeBracket:
      return scanBracket(scan, code, at);
    case 0x20:
    case 0x0a:
    case 0x0d:
    case 0x09:
      return endOfBlank(scan.bytes, at + 1, end);
    default:
      return scan.expected === "value" ? scanScalar(scan, code, at) : -1;
  }
}

/** Scans a bracket or a brace. One that closes follows a whole value, unless what it closes is empty. */
function scanBracket(scan: Scan, code: number, at: number): number {
  const { bounds, counts } = scan;
  const isObject = code === openBrace || code === closeBrace;
  const first = isObject ? "key" : "value";
  if (code === openBrace || code === openBracket) {
    if (scan.expected !== "value") return -1;
    if (++scan.nodes > bounds.nodes) throw tooMany(bounds.nodes, nodes, at);
    if (scan.depth === bounds.depth) throw tooMany(bounds.depth, "levels", at);
    counts[scan.depth] = isObject ? 1 : -1;
    scan.opened[scan.depth] = at;
    scan.begun[scan.depth] = at + 1;
    scan.depth++;
    scan.keys?.push(new Set());
    scan.expected = first;
  } else {
    const count = counts[scan.depth - 1] as number;
    if (scan.depth === 0 || count > 0 !== isObject) return -1;
    const isEmpty = scan.expected === first && Math.abs(count) === 1;
    if (scan.expected !== "comma" && !isEmpty) return -1;
    scan.depth--;
    scan.keys?.pop();
    scan.expected = "comma";
  }
  return at + 1;
}

function tooMany(allowed: number, of: string, at: number): GatewayError {
  return new GatewayError("JSON_BOUND", `expected at most ${allowed} ${of}, got more at offset ${at}`);
}

function endOfBlank(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09)) at++;
  return at;
}

/** Scans a string on, from an offset in it. Returns the offset behind it, or one from `end` on where it goes on there. */
function scanText(scan: Scan, from: number, end: number): number {
  const { bytes, bounds, keys, text: start } = scan;
  let at = from;
  for (; at < end; at++) {
    const code = bytes[at] as number;
    if (code === quote) {
      const isSuspect = scan.isSuspect || at - start - 1 > bounds.stringLength;
      if (isSuspect || keys !== null) checkString(scan, at);
      scan.isInText = false;
      scan.expected = scan.expected === "key" ? "colon" : "comma";
      return at + 1;
    }
    if (code < 0x20) {
      scan.at = at;
      return -1;
    }
    if (code === backslash) at = scanEscape(scan, at);
  }
  if (at >= bytes.length) throw new GatewayError("MALFORMED_JSON", `unterminated string at offset ${start}`);
  // Not amid a character.
  while (((bytes[at] as number) & 0xc0) === 0x80) at++;
  return at;
}

/** Scans the escape that begins at `at`. Returns the offset of its last letter. */
function scanEscape(scan: Scan, at: number): number {
  const { bytes } = scan;
  scan.hasEscape = true;
  let end = at + 1;
  if (bytes[end] !== letterU) return end;
  while (end < at + 5 && bytes[end + 1] !== quote) end++;
  const high = bytes[at + 2] as number;
  const isNul = high === zero && bytes[at + 3] === zero && bytes[at + 4] === zero && bytes[at + 5] === zero;
  scan.isSuspect ||= isNul || high === 0x64 || high === 0x44;
  return end;
}

/** Checks the string that ends at `end` as it is meant, and that no other key of its object is the same. */
function checkString(scan: Scan, end: number): void {
  const { bytes, bounds, text: start } = scan;
  if (end - start - 1 > bounds.stringLength * 6) throw tooLong(bounds, start);
  const raw = bytes.toString("utf8", start, end + 1);
  const value = scan.hasEscape ? readEscapes(raw, start, bounds) : raw.slice(1, -1);
  if (value.length > bounds.stringLength) throw tooLong(bounds, start);
  const keys = scan.expected === "key" ? scan.keys?.at(-1) : undefined;
  if (keys?.has(value) === true) {
    throw new GatewayError("MALFORMED_JSON", `duplicate key \`${value.slice(0, 64)}\` at offset ${start}`);
  }
  keys?.add(value);
}

function readEscapes(raw: string, start: number, bounds: JsonBounds): string {
  let value: string;
  try {
    value = JSON.parse(raw) as string;
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
const numberPart = new Uint8Array(256);
numberPart.fill(1, 0x30, 0x3a);
for (const code of Buffer.from(".eE+-")) numberPart[code] = 2;
/** Integers of so many digits are exact. */
const exactDigits = 15;

/** Scans a number, or `true`, `false` or `null`. */
function scanScalar(scan: Scan, code: number, start: number): number {
  const { bytes, bounds } = scan;
  scan.expected = "comma";
  if (code !== minus && numberPart[code] !== 1) {
    const literal = code === 0x74 ? "true" : code === 0x66 ? "false" : "null";
    let read = 0;
    while (read < literal.length && bytes[start + read] === literal.charCodeAt(read)) read++;
    return read === literal.length ? start + read : -1;
  }
  let end = start;
  while (numberPart[bytes[end] as number] === 1) end++;
  const isExact = end > start && end - start <= exactDigits;
  const digitsEnd = end;
  while ((numberPart[bytes[end] as number] ?? 0) > 0) end++;
  if (bounds.reader === "exact" && !(isExact && end === digitsEnd))
    checkNumber(bytes.toString("latin1", start, end), start);
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
