import { Buffer } from "node:buffer";
import type { Redaction } from "../../action/policy.ts";
import { isKnownToStand, plainCharacter } from "./plain-character.ts";

/** Code units around a place that are read with it: a private key fits. */
export const reach = 4_096;

const odd = /[^\t\n\r -~]/g;
/** Code units that are looked at one by one: the expression is faster over many, and slower to begin. */
const nearby = 32;
/** By code unit of ASCII: what everybody reads as it stands, and of that the characters of words and numbers. */
const [asItStands, inWord, inNumber] = [1, 2, 4];
const asciiKinds = Uint8Array.from({ length: 128 }, (_, unit) => {
  const character = String.fromCharCode(unit);
  const isPlain = /[\t\n\r -~]/.test(character);
  return (isPlain ? asItStands : 0) + (/[\w.@-]/.test(character) ? inWord : 0) + (/\d/.test(character) ? inNumber : 0);
});

/** A range of a text, in code units. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
  /** Bytes of UTF-8 before the range. */
  readonly fromByte: number;
}

const none: readonly TextRange[] = [];

/** The ranges of a text in which a reader sees other characters than there are; none for most texts. Linear. */
export function oddRanges(text: string): readonly TextRange[] {
  if (nextOdd(text, 0) === text.length) return none;
  const search = new OddSearch(text);
  search.run(text.length);
  return search.ranges();
}

/** Searches a long text for its odd ranges, in steps. */
export class OddSearch {
  readonly #text: string;
  readonly #found: { from: number; to: number }[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes on for about so many code units; true at the end. */
  run(maxUnits: number): boolean {
    const text = this.#text;
    const end = Math.min(text.length, this.#at + maxUnits);
    const part = text.slice(0, end);
    for (let at = nextOdd(part, this.#at); at < end; at = nextOdd(part, this.#at)) {
      this.#at = endOfCharacter(text, at);
      if (!isMisread(text, at, this.#at)) continue;
      const last = this.#found.at(-1);
      if (last !== undefined && at - reach <= last.to) last.to = this.#at + reach;
      else this.#found.push({ from: at - reach, to: this.#at + reach });
    }
    this.#at = Math.max(this.#at, end);
    return end === text.length;
  }

  /** The ranges that were found so far. */
  ranges(): readonly TextRange[] {
    const text = this.#text;
    return withBytes(
      text,
      this.#found.map(({ from, to }) => ({ from: edge(text, Math.max(0, from)), to: edge(text, to) })),
    );
  }
}

/**
 * The place of the next character that not everybody may read as it stands; the length of the text where there is none. Passes
 * over those of other scripts of which is known that everybody does, as far as they are near to one another.
 */
function nextOdd(text: string, from: number): number {
  let near = Math.min(text.length, from + nearby);
  for (let at = from; at < near; at++) {
    if (kindsAt(text, at) !== 0) continue;
    if (!isKnownToStand(text.charCodeAt(at))) return at;
    near = Math.min(text.length, at + nearby);
  }
  odd.lastIndex = near;
  return odd.test(text) ? odd.lastIndex - 1 : text.length;
}

/** The kinds of an ASCII character; 0 for any other, for controls and outside of the text. */
function kindsAt(text: string, at: number): number {
  return asciiKinds[text.charCodeAt(at)] ?? 0;
}

function endOfCharacter(text: string, at: number): number {
  return at + ((text.codePointAt(at) as number) > 0xffff ? 2 : 1);
}

/** True where a character counts: a blank between digits, what is invisible beside a letter, a look-alike in a word. */
function isMisread(text: string, from: number, to: number): boolean {
  const plain = plainCharacter(text.codePointAt(from) as number);
  if (plain === null || plain.kind === "character") return plain !== null;
  const [before, after] = [kindsAt(text, from - 1), kindsAt(text, to)];
  if (plain.text === " " || plain.text === "-") return (before & after & inNumber) !== 0;
  return ((before | after) & inWord) !== 0;
}

/** The beginning and the end of a text, of so many code units each; one range where they meet. */
export function edgeRanges(text: string, units: number): readonly TextRange[] {
  const whole = { from: 0, to: text.length };
  if (text.length <= 2 * units) return withBytes(text, [whole]);
  const end = { from: edge(text, text.length - units), to: text.length };
  return withBytes(text, [{ from: 0, to: edge(text, units) }, end]);
}

/** Adds to ranges, in their order, the bytes before them. */
function withBytes(text: string, ranges: readonly Pick<TextRange, "from" | "to">[]): readonly TextRange[] {
  let [at, byte] = [0, 0];
  return ranges.map(({ from, to }) => {
    byte += Buffer.byteLength(text.slice(at, from));
    at = from;
    return { from, to, fromByte: byte };
  });
}

/** Never between the halves of a character. */
function edge(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : Math.min(at, text.length);
}

/** A range of the UTF-8 of a source. */
export interface SourceRange {
  readonly source: number;
  from: number;
  to: number;
}

interface Run extends SourceRange {
  /** Bytes of the plain text. */
  readonly at: number;
  readonly end: number;
  /** True where the plain text has the very bytes of the source. */
  readonly isExact: boolean;
}

/** Builds a text as a reader takes it, of ranges of other texts, and finds the places it was made of. */
export class PlainText {
  readonly #parts: string[] = [];
  readonly #runs: Run[] = [];
  #length = 0;

  get text(): string {
    return this.#parts.join("");
  }

  /** Appends a text of ASCII that is of no source. */
  addFixed(text: string): void {
    this.#parts.push(text);
    this.#length += text.length;
  }

  /**
   * Appends a range of a text. What `masks`, in their order, replace is replaced here, too. Linear in the text.
   */
  add(source: number, text: string, { from, to, fromByte }: TextRange, masks: readonly Redaction[]): void {
    let [at, byte] = [from, fromByte];
    for (const mask of masks) {
      const start = unitAt(text, at, byte, mask.start);
      if (mask.end <= byte) continue;
      if (start >= to) break;
      byte = this.#addPlain(source, text, at, Math.max(at, start), byte);
      const end = unitAt(text, Math.max(at, start), byte, mask.end);
      this.#push(source, mask.replacement, byte, mask.end, false);
      byte = mask.end;
      at = end;
    }
    if (at < to) this.#addPlain(source, text, at, to, byte);
  }

  /** The ranges of sources that bytes of the plain text were made of; those of one source in a row are one. */
  sourcesOf(start: number, end: number): readonly SourceRange[] {
    const ranges: SourceRange[] = [];
    for (let index = this.#runBefore(start); index < this.#runs.length; index++) {
      const run = this.#runs[index] as Run;
      if (run.at >= end) break;
      if (run.end <= start) continue;
      const from = run.isExact ? run.from + Math.max(0, start - run.at) : run.from;
      const to = run.isExact ? Math.min(run.to, run.from + end - run.at) : run.to;
      const last = ranges.at(-1);
      if (last !== undefined && last.source === run.source) last.to = to;
      else ranges.push({ source: run.source, from, to });
    }
    return ranges;
  }

  #runBefore(start: number): number {
    let [low, high] = [0, this.#runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#runs[middle] as Run).at <= start) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Returns the byte at which the source goes on. */
  #addPlain(source: number, text: string, from: number, to: number, firstByte: number): number {
    let [at, byte] = [from, firstByte];
    // Of a long text nothing is searched behind the range.
    const part = text.slice(0, to);
    for (let [place, end] = [nextOdd(part, from), 0]; place < to; place = nextOdd(part, end)) {
      end = endOfCharacter(text, place);
      const plain = plainCharacter(text.codePointAt(place) as number);
      if (plain === null) continue;
      byte = this.#addExact(source, text.slice(at, place), byte);
      const next = byte + Buffer.byteLength(text.slice(place, end));
      this.#push(source, plain.text, byte, next, false);
      byte = next;
      at = end;
    }
    return this.#addExact(source, text.slice(at, to), byte);
  }

  #addExact(source: number, text: string, from: number): number {
    if (text === "") return from;
    const to = from + Buffer.byteLength(text);
    this.#push(source, text, from, to, true);
    return to;
  }

  #push(source: number, text: string, from: number, to: number, isExact: boolean): void {
    if (text === "") return;
    const at = this.#length;
    this.#length += isExact ? to - from : text.length;
    this.#runs.push({ source, from, to, at, end: this.#length, isExact });
    this.#parts.push(text);
  }
}

/** The code unit of a byte at or after one whose code unit is known. */
function unitAt(text: string, at: number, byte: number, wanted: number): number {
  if (wanted <= byte) return at;
  return at + Buffer.from(text.slice(at, at + wanted - byte)).toString("utf8", 0, wanted - byte).length;
}
