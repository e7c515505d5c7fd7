import { isJsonObject, type Json } from "./json.ts";

/**
 * Characters that a reader does not see or mistakes for others: controls, format characters (bidi, zero-width, tags),
 * surrogates alone, private use, unassigned and non-characters, variation selectors and fillers, line and paragraph
 * separators, and every blank but the space.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/u;
/** Printable ASCII but the backslash: what most texts are, and needs no table. */
const ordinary = /^[ -[\]-~]*$/;
const backslash = 0x5c;
const smallU = 0x75;
/** The character behind the backslash in JSON's short escapes. */
const shortEscapes: ReadonlyMap<number, number> = new Map([
  [0x09, 0x74],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x22, 0x22],
  [backslash, backslash],
]);

/** Properties of a code point, as bits. */
const sign = { hidden: 1, quoted: 2, latin: 4, cyrillic: 8, greek: 16 } as const;
/** Signs by code point, learned block by block: all at once would hold the thread for a quarter of a second. */
const signs = new Uint8Array(0x110000);
const blockBits = 8;
const learned = new Uint8Array(signs.length >> blockBits);

/**
 * Text from anybody, whole and on one line: each character that is not seen as itself is shown as `\u{…}`, and so is a
 * backslash before `u{`, so what is shown says exactly what the text is.
 * Linear, never cut; throws RangeError where the result is longer than a string can be.
 */
export function escapeHidden(text: string): string {
  return ordinary.test(text) ? text : showHidden(text, false);
}

const maxShown = 256;

/** The text as `escapeHidden` returns it, cut to 256 characters. */
export function showText(text: string): string {
  if (text.length <= maxShown && ordinary.test(text)) return text;
  const characters = Array.from(text.slice(0, maxShown * 2 + 2));
  const cut = characters.length > maxShown ? `${characters.slice(0, maxShown).join("")}…` : text;
  return escapeHidden(cut);
}

/** Control, format (bidi, zero-width, tag) and surrogate characters, private use, line and paragraph separators. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

/** Returns true if a text contains a character that is invisible. */
export function hasUnprintable(text: string): boolean {
  return text.search(unprintable) !== -1;
}

/**
 * The same for a reviewer: letters that resemble others stay, but a text that mixes Latin with Cyrillic or Greek says so
 * behind itself.
 */
export function visibleText(text: string): string {
  const note = scriptNote(text);
  return note === undefined ? escapeHidden(text) : `${escapeHidden(text)} [${note}]`;
}

/** The text between quotes, escaped in the same way but with `\n`, `\r`, `\t`, `\"` and `\\` as JSON writes them. */
export function quoteVisible(text: string): string {
  return `"${showHidden(text, true)}"`;
}

/** Quotes a word that could be mistaken for several words or for other characters. */
export function quoteWord(word: string): string {
  if (/^[\w./~:@%+*\\-]+$/.test(word)) return word;
  const note = scriptNote(word);
  return note === undefined ? quoteVisible(word) : `${quoteVisible(word)} [${note}]`;
}

/** Returns a note on scripts whose letters look alike; undefined where none are mixed. */
export function scriptNote(text: string): string | undefined {
  const seen = signsIn(text);
  const others = [...(seen & sign.cyrillic ? ["Cyrillic"] : []), ...(seen & sign.greek ? ["Greek"] : [])];
  return seen & sign.latin && others.length > 0 ? `mixes Latin and ${others.join(" and ")} letters` : undefined;
}

/** All signs that occur in a text. */
function signsIn(text: string): number {
  let seen = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) as number;
    if (code > 0xffff) at += 1;
    seen |= signsAt(code);
  }
  return seen;
}

/** A callback a character is too slow for hostile megabytes; this costs the same whatever they hold. */
function showHidden(text: string, quoted: boolean): string {
  if ((signsIn(text) & (sign.hidden | sign.quoted)) === 0) return text;
  const writer = new UnitWriter();
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) as number;
    if (code > 0xffff) at += 1;
    const short = quoted && code <= backslash ? shortEscapes.get(code) : undefined;
    const misleads = !quoted && code === backslash && text.startsWith("u{", at + 1);
    if (short !== undefined) writer.writePair(backslash, short);
    else if (misleads || signsAt(code) & sign.hidden) writer.writeEscape(code);
    else if (code > 0xffff) writer.writePair(text.charCodeAt(at - 1), text.charCodeAt(at));
    else writer.write(code);
  }
  return writer.text();
}

/** One look-up a character is as fast for what is rare as for what is usual; a pattern is not. */
function signsAt(code: number): number {
  const block = code >> blockBits;
  if (learned[block] === 0) learnBlock(block);
  return signs[code] as number;
}

function learnBlock(block: number): void {
  const start = block << blockBits;
  for (let code = start; code < start + (1 << blockBits); code++) signs[code] = signOf(String.fromCodePoint(code));
  learned[block] = 1;
}

function signOf(character: string): number {
  if (hidden.test(character)) return sign.hidden;
  if (character === '"' || character === "\\") return sign.quoted;
  if (/\p{Script=Latin}/u.test(character)) return sign.latin;
  if (/\p{Script=Cyrillic}/u.test(character)) return sign.cyrillic;
  return /\p{Script=Greek}/u.test(character) ? sign.greek : 0;
}

const digits = Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const openBrace = 0x7b;
const closeBrace = 0x7d;
const maxEscape = "\\u{10ffff}".length;

/** Builds a string of UTF-16 code units. */
class UnitWriter {
  readonly #units = new Uint16Array(16_384);
  #length = 0;
  #text = "";

  write(unit: number): void {
    this.#reserve(1);
    this.#units[this.#length++] = unit;
  }

  writePair(first: number, second: number): void {
    this.#reserve(2);
    this.#units[this.#length++] = first;
    this.#units[this.#length++] = second;
  }

  /** `\u{…}` */
  writeEscape(code: number): void {
    this.#reserve(maxEscape);
    const units = this.#units;
    let length = this.#length;
    units[length++] = backslash;
    units[length++] = smallU;
    units[length++] = openBrace;
    let shift = 20;
    while (shift > 0 && code >> shift === 0) shift -= 4;
    for (; shift >= 0; shift -= 4) units[length++] = digits[(code >> shift) & 15] as number;
    units[length++] = closeBrace;
    this.#length = length;
  }

  text(): string {
    this.#flush();
    return this.#text;
  }

  #reserve(count: number): void {
    if (this.#length + count > this.#units.length) this.#flush();
  }

  #flush(): void {
    this.#text += Buffer.from(this.#units.buffer, 0, this.#length * 2).toString("utf16le");
    this.#length = 0;
  }
}

interface Value {
  /** The member's name and a colon, or nothing. */
  readonly label: string;
  readonly value: Json;
  readonly depth: number;
  readonly comma: "," | "";
  readonly note: string;
}

const maxIndent = 32;

/**
 * A value as indented JSON for a reader: every text whole and escaped as `quoteVisible` does it, every number as it was
 * parsed, members in their order. A line whose texts mix scripts says so behind `//`.
 * Linear, at any depth: indentation stops growing at 32 levels. Never cut.
 */
export function visibleJson(value: Json): string {
  const lines: string[] = [];
  const waiting: (Value | string)[] = [{ label: "", value, depth: 0, comma: "", note: "" }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    lines.push(typeof next === "string" ? next : firstLine(next, waiting));
  }
  return lines.join("\n");
}

/** The line a value begins with; what follows it is put on top of `waiting`. */
function firstLine({ label, value, depth, comma, note }: Value, waiting: (Value | string)[]): string {
  const indent = "  ".repeat(Math.min(depth, maxIndent));
  const inner = valuesIn(value, depth + 1);
  if (inner.length === 0) return `${indent}${label}${scalarText(value)}${comma}${note || noteOf(value)}`;
  waiting.push(`${indent}${Array.isArray(value) ? "]" : "}"}${comma}`);
  for (const each of inner.reverse()) waiting.push(each);
  return `${indent}${label}${Array.isArray(value) ? "[" : "{"}${note}`;
}

function valuesIn(container: Json, depth: number): Value[] {
  if (Array.isArray(container)) {
    const last = container.length - 1;
    return container.map((value, index) => ({ label: "", value, depth, comma: index === last ? "" : ",", note: "" }));
  }
  if (!isJsonObject(container)) return [];
  const members = Object.entries(container);
  return members.map(([name, value], index) => ({
    label: `${quoteVisible(name)}: `,
    value,
    depth,
    comma: index === members.length - 1 ? "" : ",",
    note: noteOf(name),
  }));
}

function scalarText(value: Json): string {
  if (typeof value === "string") return quoteVisible(value);
  // Only an empty container comes here.
  if (Array.isArray(value)) return "[]";
  return isJsonObject(value) ? "{}" : String(value);
}

function noteOf(value: Json): string {
  const note = typeof value === "string" ? scriptNote(value) : undefined;
  return note === undefined ? "" : ` // ${note}`;
}
