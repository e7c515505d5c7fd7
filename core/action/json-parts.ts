import { countMembers, deepFreeze, type Json, type JsonObject } from "./json.ts";

const comma = 0x2c;
const openBracket = 0x5b;

/** A place in a JSON text: up to here its tokens are in the order of JSON. */
export interface JsonPlace {
  /** The offset of the next token, or inside of a string. */
  readonly at: number;
  /** Levels that are open. Of a level, what is behind them says nothing. */
  readonly depth: number;
  /** The offset of each level's bracket or brace. */
  readonly opened: readonly number[];
  /** The offset at which, of each level, the member or item begins that was read last: behind its bracket or comma. */
  readonly begun: readonly number[];
  readonly expected: "value" | "key" | "colon" | "comma";
  /** The offset of the quote that opens the string that was read last. */
  readonly text: number;
  /** True inside of that: then the next place is in it too, or right behind it. Between two of its characters or escapes. */
  readonly isInText: boolean;
  readonly hasEscape: boolean;
}

/** Says what of a text is no JSON. */
export class PartFault extends Error {}

type Container = Json[] | Record<string, Json>;

/** An array or object that is longer than a part, and its name in the object that it is a member of. */
interface Divided {
  readonly name: string;
  readonly value: Container;
}

/** A string that a part has ended in, as far as it has been read, and its name as that of what is divided. */
interface BegunText {
  readonly name: string;
  read: string;
}

/**
 * Builds the value of a long text in parts, deeply frozen: `JSON.parse` takes tens of milliseconds for tens of thousands of members,
 * and reads a text at once. It reads the parts, too, so that nothing has another meaning than in the whole.
 */
export class JsonParts {
  /** Members of all objects, where no two in one part have one name. */
  members = 0;
  readonly #bytes: Buffer;
  readonly #open: Divided[] = [];
  /** The offset from which on nothing has been built. */
  #from = 0;
  /** True if a value is before it that was built by itself: then its comma comes first. */
  #isBehind = false;
  #text: BegunText | undefined;
  #whole: Json | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * Builds what is before a place. Of the levels that are open at one place, those that close before the next do so one by one, each right
   * before a place. Throws PartFault.
   */
  take(place: JsonPlace): void {
    const { at, depth, begun, expected, isInText } = place;
    if (depth < this.#open.length) {
      this.#close(at - 1);
      return;
    }
    while (this.#open.length < depth) this.#enter(place);
    if (depth > 0) this.#add(begun[depth - 1] as number);
    if (isInText && expected === "value") this.#readText(place, at);
    else if (this.#text !== undefined) this.#endText(place);
  }

  /** Returns the value, once all is read. Throws PartFault. */
  end(): Json {
    if (this.#whole !== undefined) return this.#whole;
    // A number, or what is shorter than a part but for the white space behind it.
    const whole = parse("", this.#bytes.toString(), "", 0);
    this.members = countMembers(whole);
    return deepFreeze(whole);
  }

  /** Goes into the array or object that is open beyond those that are divided. */
  #enter({ opened, begun }: JsonPlace): void {
    const level = this.#open.length;
    const at = opened[level] as number;
    if (level > 0) this.#add(begun[level - 1] as number);
    this.#open.push({ name: this.#nameBefore(at), value: this.#bytes[at] === openBracket ? [] : {} });
    this.#from = at + 1;
  }

  #close(at: number): void {
    this.#add(at);
    const { name, value } = this.#open.pop() as Divided;
    // All that is in it is frozen already: to freeze tens of thousands of members at once takes too long.
    this.#put(name, Object.freeze(value), at + 1);
  }

  /** Reads a string on up to an offset in it. Returns it so far. */
  #readText({ text, hasEscape }: JsonPlace, end: number): BegunText {
    this.#text ??= { name: this.#nameBefore(text), read: "" };
    const from = Math.max(this.#from, text + 1);
    const piece = this.#bytes.toString("utf8", from, end);
    this.#text.read += hasEscape ? parse('"', piece, '"', from) : piece;
    this.#from = end;
    return this.#text;
  }

  #endText(place: JsonPlace): void {
    const { name, read } = this.#readText(place, place.at - 1);
    this.#text = undefined;
    // Whoever looks into it first has its pieces joined: here that has a turn of its own.
    read.charCodeAt(0);
    this.#put(name, read, place.at);
  }

  /** Returns the name of the member that has been added up to its value, which begins at `end`; counts it. */
  #nameBefore(end: number): string {
    const to = this.#open.at(-1)?.value;
    if (to === undefined || Array.isArray(to)) return "";
    this.members++;
    const part = parse("{", this.#bytes.toString("utf8", this.#from, end), "null}", this.#from) as JsonObject;
    return Object.keys(part)[0] as string;
  }

  /** Adds a value that was built by itself and ends before `end`. */
  #put(name: string, value: Json, end: number): void {
    const to = this.#open.at(-1)?.value;
    if (to === undefined) this.#whole = value;
    else if (Array.isArray(to)) to.push(value);
    else setMember(to, name, value);
    this.#from = end;
    this.#isBehind = true;
  }

  /** Adds the members or items before `end`, where the next begins or the last has ended. */
  #add(end: number): void {
    if (end <= this.#from) return;
    const bytes = this.#bytes;
    let start = this.#from;
    if (this.#isBehind) {
      // Nothing but white space is before it.
      while (start < end && bytes[start] !== comma) start++;
      start = Math.min(start + 1, end);
    }
    this.#from = end;
    this.#isBehind = false;
    if (start === end) return;
    const to = (this.#open.at(-1) as Divided).value;
    const isArray = Array.isArray(to);
    const text = bytes.toString("utf8", start, bytes[end - 1] === comma ? end - 1 : end);
    const part = parse(isArray ? "[" : "{", text, isArray ? "]" : "}", start);
    this.members += countMembers(part);
    if (isArray) for (const item of part as Json[]) to.push(deepFreeze(item));
    else for (const [name, member] of Object.entries(part as JsonObject)) setMember(to, name, deepFreeze(member));
  }
}

/** Parses a part of a text that begins at `start` in it. */
function parse(before: string, text: string, after: string, start: number): Json {
  const part = before + text + after;
  try {
    return JSON.parse(part) as Json;
  } catch (fault) {
    throw new PartFault(syntaxFault(fault as SyntaxError, part, start - before.length));
  }
}

/** Says in words of our own what `JSON.parse` said of a text that begins at `start`: its message differs between versions, and quotes maybe a secret. */
export function syntaxFault({ message }: SyntaxError, text: string, start: number): string {
  if (/end of JSON/.test(message)) return "unexpected end";
  const place = /position (\d+)/.exec(message)?.[1];
  if (place === undefined) return "unexpected character";
  return `unexpected character at offset ${start + Buffer.byteLength(text.slice(0, Number(place)))}`;
}

/** `__proto__` becomes a member like any other, as `JSON.parse` makes it. */
function setMember(to: Record<string, Json>, name: string, value: Json): void {
  if (Object.hasOwn(to, name)) throw new PartFault("duplicate key");
  else if (name === "__proto__")
    Object.defineProperty(to, name, { value, configurable: true, enumerable: true, writable: true });
  else to[name] = value;
}
