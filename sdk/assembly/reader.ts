import { decode } from "./decode";
import { closingQuote, endOfLiteral } from "./scan";
import { byteAt, isWord, Span } from "./span";

/** Levels of JSON; beyond them the plugin traps, which blocks. */
const deepest: i32 = 256;
const usualDepth: i32 = 16;

/** The kind of token that a reader is at. */
export enum Token {
  /** The name of a member; its value comes next. */
  name,
  text,
  /** A number, `true`, `false` or `null`. */
  literal,
}

/**
 * Reads a JSON value once, from start to end, and stops at each name, text and literal. Builds nothing: `from` and
 * `to` are positions in the input.
 *
 *     while (reader.next()) if (reader.token === Token.text) look(reader.decoded(), reader.pointer());
 */
export class Reader {
  token: Token = Token.literal;
  /** The name, text or literal as it stands in the JSON: between its quotation marks, escapes and all. */
  from: i32 = 0;
  to: i32 = 0;
  /** Steps from where the reader began to where it stands; a name is a step of its own way. */
  depth: i32 = 0;
  private at: i32;
  private end: i32;
  private base: string;
  private valueNext: bool;
  /** A step is the name of a member, by its places, or an index: `~index`, and no place. */
  private starts: StaticArray<i32> = new StaticArray<i32>(usualDepth);
  private ends: StaticArray<i32> = new StaticArray<i32>(usualDepth);

  /** Reads the value that begins at `from` in a text that ends at `end`, or of nothing where `from` is 0; `base` is the JSON Pointer of that value. */
  constructor(from: i32, end: i32, base: string) {
    this.at = from;
    this.end = end;
    this.base = base;
    this.valueNext = from !== 0;
  }

  /** Goes on to what comes next; false where the value ends. */
  next(): bool {
    while (true) {
      if (this.valueNext) {
        if (this.enter()) continue;
        this.readScalar();
        return true;
      }
      if (this.depth === 0) return false;
      const step = this.depth - 1;
      let byte = byteAt(this.at);
      if (byte === 0x7d || byte === 0x5d) {
        this.depth--;
        this.at++;
        continue;
      }
      const isList = unchecked(this.starts[step]) < 0;
      if (byte === 0x2c) {
        byte = byteAt(++this.at);
        if (isList) this.starts[step]--;
      }
      this.valueNext = true;
      if (isList) continue;
      this.readName(step);
      return true;
    }
  }

  /** Returns true if a step of the path is a member of this name, which is ASCII. */
  stepIs(step: i32, name: string): bool {
    return step < this.depth && this.starts[step] >= 0 && isWord(this.starts[step], this.ends[step], name);
  }

  /** The name of the member that the reader stands in, as it stands in the JSON; null in a list and at the top. */
  stepName(): Span | null {
    const last = this.depth - 1;
    return last < 0 || this.starts[last] < 0 ? null : new Span(this.starts[last], this.ends[last]);
  }

  /** JSON Pointer of where the reader stands, or of what is above it, `depth` steps from where it began. */
  pointer(depth: i32 = this.depth): string {
    let pointer = this.base;
    for (let step = 0; step < depth; step++) {
      const start = this.starts[step];
      const name = start < 0 ? (~start).toString() : decode(start, this.ends[step]).toString();
      pointer += `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    }
    return pointer;
  }

  /** The decoded name or text in UTF-8; redactions count its bytes. */
  decoded(): Span {
    return decode(this.from, this.to);
  }

  private enter(): bool {
    const byte = byteAt(this.at);
    if (byte !== 0x7b && byte !== 0x5b) return false;
    if (this.depth === this.starts.length) this.deepen();
    this.at++;
    const isList = byte === 0x5b;
    this.starts[this.depth++] = isList ? ~0 : 0;
    this.valueNext = isList && byteAt(this.at) !== 0x5d;
    return true;
  }

  private deepen(): void {
    if (this.depth >= deepest) unreachable();
    this.starts = doubled(this.starts);
    this.ends = doubled(this.ends);
  }

  private readScalar(): void {
    this.valueNext = false;
    if (byteAt(this.at) === 0x22) {
      this.readText(Token.text);
      return;
    }
    this.token = Token.literal;
    this.from = this.at;
    this.to = endOfLiteral(this.at, this.end);
    this.at = this.to;
  }

  private readName(step: i32): void {
    this.readText(Token.name);
    this.starts[step] = this.from;
    this.ends[step] = this.to;
    this.at++; // the colon
  }

  private readText(token: Token): void {
    this.token = token;
    this.from = this.at + 1;
    this.to = closingQuote(this.from, this.end);
    this.at = this.to + 1;
  }
}

function doubled(steps: StaticArray<i32>): StaticArray<i32> {
  const more = new StaticArray<i32>(2 * steps.length);
  for (let step = 0; step < steps.length; step++) more[step] = steps[step];
  return more;
}
