import { isUtf8 } from "node:buffer";
import { GatewayError } from "./error.ts";
import type { Json } from "./json.ts";

export interface JsonBounds {
  readonly depth: number;
  /** Objects, arrays and members together. */
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
 * Reads one JSON text so that two readers cannot disagree about it.
 * Refuses invalid UTF-8, a BOM, NUL, lone surrogates, duplicate keys, negative zero and numbers a double cannot
 * hold (MALFORMED_JSON), and what is too deep, too wide or too long (JSON_BOUND) before building it.
 * `__proto__` and its like are plain members.
 */
export function parseStrictJson(bytes: Uint8Array, bounds: JsonBounds): Json {
  if (!isUtf8(bytes)) throw new GatewayError("MALFORMED_JSON", "expected UTF-8, got invalid bytes");
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return parseStrictText(text, bounds);
}

/** The same for a text that is already decoded. */
export function parseStrictText(text: string, bounds: JsonBounds): Json {
  if (text.charCodeAt(0) === 0xfeff) throw new GatewayError("MALFORMED_JSON", "expected no byte order mark");
  new Scanner(text, bounds).scan();
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

/**
 * Finds what `JSON.parse` lets through. Runs first, so depth is bounded before anything is built;
 * what is not JSON at all is left for `JSON.parse` to name.
 */
class Scanner {
  readonly #text: string;
  readonly #bounds: JsonBounds;
  /** One entry a level: the keys seen so far, or null in an array. */
  readonly #open: (Set<string> | null)[] = [];
  #keyNext = false;
  #nodes = 0;

  constructor(text: string, bounds: JsonBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  scan(): void {
    const text = this.#text;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === quote) at = this.#string(at);
      else if (code === 0x7b) this.#enter(new Set(), at);
      else if (code === 0x5b) this.#enter(null, at);
      else if (code === 0x7d || code === 0x5d) this.#leave();
      else if (code === 0x2c) this.#comma(at);
      else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) at = this.#number(at);
    }
  }

  #enter(keys: Set<string> | null, at: number): void {
    this.#count(at);
    this.#open.push(keys);
    this.#keyNext = keys !== null;
    if (this.#open.length > this.#bounds.depth) {
      throw new GatewayError("JSON_BOUND", `expected at most ${this.#bounds.depth} levels, got more at offset ${at}`);
    }
  }

  #leave(): void {
    this.#open.pop();
    this.#keyNext = false;
  }

  #comma(at: number): void {
    this.#count(at);
    this.#keyNext = this.#open.at(-1) instanceof Set;
  }

  #count(at: number): void {
    if (++this.#nodes > this.#bounds.nodes) {
      throw new GatewayError("JSON_BOUND", `expected at most ${this.#bounds.nodes} members, got more at offset ${at}`);
    }
  }

  /** Checks the string that opens at `start`; returns the offset of its closing quote. */
  #string(start: number): number {
    const end = this.#closingQuote(start);
    if (end - start - 1 > this.#bounds.stringLength * 6) this.#tooLong(start);
    const raw = this.#text.slice(start + 1, end);
    const value = raw.includes("\\") ? this.#unescape(raw, start) : raw;
    if (value.length > this.#bounds.stringLength) this.#tooLong(start);
    if (this.#keyNext) this.#key(value, start);
    return end;
  }

  #closingQuote(start: number): number {
    for (let end = this.#text.indexOf('"', start + 1); end !== -1; end = this.#text.indexOf('"', end + 1)) {
      let slashes = 0;
      while (this.#text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
      if (slashes % 2 === 0) return end;
    }
    throw new GatewayError("MALFORMED_JSON", `unterminated string at offset ${start}`);
  }

  #unescape(raw: string, start: number): string {
    let value: string;
    try {
      value = JSON.parse(`"${raw}"`) as string;
    } catch (cause) {
      throw new GatewayError("MALFORMED_JSON", `bad escape in the string at offset ${start}`, { cause });
    }
    if (!value.isWellFormed())
      throw new GatewayError("MALFORMED_JSON", `lone surrogate in the string at offset ${start}`);
    if (this.#bounds.reader === "exact" && value.includes("\0"))
      throw new GatewayError("MALFORMED_JSON", `NUL in the string at offset ${start}`);
    return value;
  }

  #key(key: string, start: number): void {
    this.#keyNext = false;
    const keys = this.#open.at(-1) as Set<string>;
    if (keys.has(key)) {
      throw new GatewayError("MALFORMED_JSON", `duplicate key \`${key.slice(0, 64)}\` at offset ${start}`);
    }
    keys.add(key);
  }

  #tooLong(start: number): never {
    throw new GatewayError(
      "JSON_BOUND",
      `expected strings of at most ${this.#bounds.stringLength} characters, got a longer one at offset ${start}`,
    );
  }

  /** Checks the number that opens at `start`; returns the offset of its last character. */
  #number(start: number): number {
    let end = start + 1;
    while (isNumberPart(this.#text.charCodeAt(end))) end++;
    if (end - start > 1 && this.#bounds.reader === "exact") this.#exact(this.#text.slice(start, end), start);
    return end - 1;
  }

  #exact(token: string, start: number): void {
    const value = Number(token);
    if (Number.isNaN(value)) return; // not a number at all: JSON.parse names it
    const vanished = value === 0 && /^-?[0.]*[1-9]/.test(token);
    if (vanished || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
      throw new GatewayError(
        "MALFORMED_JSON",
        `number \`${token.slice(0, 40)}\` at offset ${start} does not fit a double exactly`,
      );
    }
    if (Object.is(value, -0)) throw new GatewayError("MALFORMED_JSON", `negative zero at offset ${start}`);
  }
}

function isNumberPart(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e || code === 0x45 || code === 0x65
  );
}
