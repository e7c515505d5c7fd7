/**
 * What a reader does not see, or takes for something else: controls, format characters (bidi, zero-width, tags),
 * surrogates alone, private use, unassigned and non-characters, variation selectors and fillers, line and paragraph
 * separators, and every blank but the space.
 */
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/u;
/** Printable ASCII but the backslash: what most texts are, and needs no table. */
const ordinary = /^[ -[\]-~]*$/;
const backslash = 0x5c;
const smallU = 0x75;
/** What stands behind the backslash where JSON has a short escape. */
const shortEscapes: ReadonlyMap<number, number> = new Map([
  [0x09, 0x74],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x22, 0x22],
  [backslash, backslash],
]);

/** What is known of a code point, as bits. */
const sign = { hidden: 1, quoted: 2, latin: 4, cyrillic: 8, greek: 16 } as const;
let table: Uint8Array | undefined;

/**
 * Text from anybody, whole and on one line: each character that is not seen as itself is shown as `\u{…}`, and so is a
 * backslash before `u{`, so what is shown says exactly what the text is.
 * Linear, never cut; throws RangeError where the result is longer than a string can be.
 */
export function escapeHidden(text: string): string {
  return ordinary.test(text) ? text : showHidden(text, false);
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

/** What a reader should know of letters that look alike; undefined where there is nothing to say. */
export function scriptNote(text: string): string | undefined {
  const seen = signsIn(text);
  const others = [...(seen & sign.cyrillic ? ["Cyrillic"] : []), ...(seen & sign.greek ? ["Greek"] : [])];
  return seen & sign.latin && others.length > 0 ? `mixes Latin and ${others.join(" and ")} letters` : undefined;
}

/** All signs that occur in a text. */
function signsIn(text: string): number {
  const signs = signTable();
  let seen = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) as number;
    if (code > 0xffff) at += 1;
    seen |= signs[code] as number;
  }
  return seen;
}

/** A callback a character is too slow for hostile megabytes; this costs the same whatever they hold. */
function showHidden(text: string, quoted: boolean): string {
  if ((signsIn(text) & (sign.hidden | sign.quoted)) === 0) return text;
  const signs = signTable();
  const writer = new UnitWriter();
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) as number;
    if (code > 0xffff) at += 1;
    const short = quoted && code <= backslash ? shortEscapes.get(code) : undefined;
    const misleads = !quoted && code === backslash && text.startsWith("u{", at + 1);
    if (short !== undefined) writer.writePair(backslash, short);
    else if (misleads || (signs[code] as number) & sign.hidden) writer.writeEscape(code);
    else if (code > 0xffff) writer.writePair(text.charCodeAt(at - 1), text.charCodeAt(at));
    else writer.write(code);
  }
  return writer.text();
}

/** One look-up a character is as fast for what is rare as for what is usual; a pattern is not. */
function signTable(): Uint8Array {
  table ??= Uint8Array.from({ length: 0x110000 }, (_, code) => signOf(String.fromCodePoint(code)));
  return table;
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
const longestEscape = "\\u{10ffff}".length;

/** Gathers UTF-16 code units. */
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
    this.#reserve(longestEscape);
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
