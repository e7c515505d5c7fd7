import { isUtf8 } from "node:buffer";
import { GatewayError } from "./error.ts";
import type { Json } from "./json.ts";

export interface JsonBounds {
  readonly depth: number;
  /** Members of objects and items of arrays together; an empty object or array counts once more. */
  readonly nodes: number;
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

/**
 * Reads one JSON text, as bytes or decoded already, so that two readers cannot disagree about it.
 * Refuses invalid UTF-8, a BOM, NUL, lone surrogates, duplicate keys, negative zero and numbers a double cannot
 * hold (MALFORMED_JSON), and what is too deep, too wide or too long (JSON_BOUND) before building it.
 * `__proto__` and its like are plain members.
 */
export function parseStrictJson(data: Uint8Array | string, bounds: JsonBounds): Json {
  if (typeof data !== "string" && !isUtf8(data))
    throw new GatewayError("MALFORMED_JSON", "expected UTF-8, got invalid bytes");
  const text =
    typeof data === "string" ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
  if (text.charCodeAt(0) === 0xfeff) throw new GatewayError("MALFORMED_JSON", "expected no byte order mark");
  scanText({ text, bounds, open: [], nodes: 0, isKeyNext: false });
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw new GatewayError("MALFORMED_JSON", syntaxFault(cause as SyntaxError));
  }
}

/** The offset of a syntax error. The engine's message differs between versions and quotes the text, maybe a secret. */
function syntaxFault(error: SyntaxError): string {
  if (/end of JSON/.test(error.message)) return "unexpected end";
  const offset = /position (\d+)/.exec(error.message)?.[1];
  return offset === undefined ? "unexpected character" : `unexpected character at offset ${offset}`;
}

/** The state of one scan. */
interface Scan {
  readonly text: string;
  readonly bounds: JsonBounds;
  /** One entry a level: the keys seen so far, or null in an array. */
  readonly open: (Set<string> | null)[];
  nodes: number;
  /** True if the next string is the name of a member. */
  isKeyNext: boolean;
}

/**
 * Finds what `JSON.parse` lets through. Runs first, so depth is bounded before anything is built;
 * what is not JSON at all is left for `JSON.parse` to name.
 */
function scanText(scan: Scan): void {
  const { text } = scan;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = scanString(scan, at);
    else if (code === 0x7b || code === 0x5b || code === 0x2c) beginNode(scan, code, at);
    else if (code === 0x7d || code === 0x5d) {
      scan.open.pop();
      scan.isKeyNext = false;
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) at = scanNumber(scan, at);
  }
}

/** Counts the object, the array or (for a comma) the member that begins here. */
function beginNode(scan: Scan, code: number, at: number): void {
  const { bounds, open } = scan;
  if (++scan.nodes > bounds.nodes) {
    throw new GatewayError(
      "JSON_BOUND",
      `expected at most ${bounds.nodes} members and items, got more at offset ${at}`,
    );
  }
  if (code !== 0x2c) open.push(code === 0x7b ? new Set() : null);
  scan.isKeyNext = open.at(-1) instanceof Set;
  if (open.length > bounds.depth) {
    throw new GatewayError("JSON_BOUND", `expected at most ${bounds.depth} levels, got more at offset ${at}`);
  }
}

/** Checks the string that opens at `start`; returns the offset of its closing quote. */
function scanString(scan: Scan, start: number): number {
  const { text, bounds } = scan;
  const end = closingQuote(text, start);
  if (end - start - 1 > bounds.stringLength * 6) throw tooLong(bounds, start);
  const raw = text.slice(start + 1, end);
  const value = raw.includes("\\") ? readEscapes(raw, start, bounds) : raw;
  if (value.length > bounds.stringLength) throw tooLong(bounds, start);
  if (!scan.isKeyNext) return end;
  scan.isKeyNext = false;
  const keys = scan.open.at(-1) as Set<string>;
  if (keys.has(value)) {
    throw new GatewayError("MALFORMED_JSON", `duplicate key \`${value.slice(0, 64)}\` at offset ${start}`);
  }
  keys.add(value);
  return end;
}

function closingQuote(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
  throw new GatewayError("MALFORMED_JSON", `unterminated string at offset ${start}`);
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

const numberPart = /[-+.0-9Ee]*/y;

/** Checks the number that opens at `start`; returns the offset of its last character. */
function scanNumber({ text, bounds }: Scan, start: number): number {
  numberPart.lastIndex = start;
  numberPart.test(text);
  const end = numberPart.lastIndex;
  if (end - start === 1 || bounds.reader !== "exact") return end - 1;
  const token = text.slice(start, end);
  const value = Number(token);
  if (Number.isNaN(value)) return end - 1; // not a number at all: JSON.parse names it
  const vanished = value === 0 && /^-?[0.]*[1-9]/.test(token);
  if (vanished || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    throw new GatewayError(
      "MALFORMED_JSON",
      `number \`${token.slice(0, 40)}\` at offset ${start} does not fit a double exactly`,
    );
  }
  if (Object.is(value, -0)) throw new GatewayError("MALFORMED_JSON", `negative zero at offset ${start}`);
  return end - 1;
}
