import { deepFreeze, type Json, type JsonObject } from "./json.ts";

/** UTF-16 code units of a part, about; a longer string is in one. */
const usualPart = 65_536;

const comma = 0x2c;
const openBracket = 0x5b;
const openBrace = 0x7b;

/** The beginning of an item, up to its text, and of a member with its name, up to the text that is its value. */
const openingOfText = /^[ \t\n\r]*(?=")/;
const openingOfMember = /^[ \t\n\r]*"(?:[^"\\]|\\.)*"[ \t\n\r]*:[ \t\n\r]*(?=")/;
/** Characters in which such a beginning is looked for. */
const maxOpening = 1_024;

/** Says that a part is no JSON, in the words of `JSON.parse`, whose offsets are `shift` less than those of the whole text. */
export class PartFault extends Error {
  readonly fault: SyntaxError;
  readonly shift: number;

  constructor(fault: SyntaxError, shift: number) {
    super(fault.message, { cause: fault });
    this.fault = fault;
    this.shift = shift;
  }
}

/** Two parts have a member of the same name. */
export class DuplicateMember extends Error {}

type Container = Json[] | Record<string, Json>;

/** The value of a part, with `null` where a member was divided itself; and the units of its text. */
type Part = readonly [value: Json, units: number];

/**
 * Builds the value of a long text in parts, deeply frozen: `JSON.parse` takes tens of milliseconds for tens of thousands of members,
 * and reads a text at once. It reads the parts, too, so that nothing has another meaning than in the whole.
 */
export class JsonParts {
  readonly #text: string;
  /** The offsets of the brackets, braces and commas between values. */
  readonly #marks: readonly number[];
  /** The place in `#marks` of what closes the array or object that is opened at a place. */
  readonly #closings: Int32Array;
  readonly #maxPart: number;
  #next = 0;

  /** The text is JSON, but perhaps for what its strings, numbers and literals are; `marks` are in order. */
  constructor(text: string, marks: readonly number[], maxPart: number = usualPart) {
    this.#text = text;
    this.#marks = marks;
    this.#maxPart = maxPart;
    this.#closings = new Int32Array(marks.length);
    const open: number[] = [];
    for (let place = 0; place < marks.length; place++) {
      const code = text.charCodeAt(marks[place] as number);
      if (isOpening(code)) open.push(place);
      else if (code !== comma) this.#closings[open.pop() as number] = place;
    }
  }

  /** Yields the parts in order, and returns the whole. Throws PartFault and DuplicateMember. */
  *build(): Generator<Part, Json> {
    return yield* this.#marks.length > 0 ? this.#container() : this.#whole(0, this.#text.length);
  }

  /** Builds the array or object that the next mark opens. */
  *#container(): Generator<Part, Json> {
    const open = this.#marks[this.#next++] as number;
    const value: Container = this.#text.charCodeAt(open) === openBracket ? [] : {};
    // From where on the text is in no part, and where the member or item begins that is passed.
    let [from, member] = [open + 1, open + 1];
    for (let wasDivided = false; ; ) {
      const place = this.#next++;
      const mark = this.#marks[place] as number;
      const code = this.#text.charCodeAt(mark);
      if (isOpening(code)) {
        this.#next = (this.#closings[place] as number) + 1;
        if ((this.#marks[this.#next - 1] as number) - mark < this.#maxPart) continue;
        if (member > from) yield this.#add(value, from, member - 1);
        this.#next = place;
        yield* this.#addOne(value, member, mark, this.#container());
        wasDivided = true;
      } else if (code === comma && !wasDivided && mark - from < this.#maxPart) member = mark + 1;
      else {
        if (!wasDivided) yield* this.#addLast(value, from, member, mark);
        // All that is in it is frozen already: to freeze tens of thousands of members at once takes too long.
        if (code !== comma) return Object.freeze(value);
        wasDivided = false;
        from = member = mark + 1;
      }
    }
  }

  /** Builds the value between two offsets in one part. */
  *#whole(start: number, end: number): Generator<Part, Json> {
    const value = deepFreeze(this.#parse("", start, end, ""));
    yield [value, end - start];
    return value;
  }

  /** Adds a member or item whose value is built by itself: its name, if it has one, is between the offsets. */
  *#addOne(to: Container, start: number, end: number, building: Generator<Part, Json>): Generator<Part, void> {
    if (Array.isArray(to)) {
      to.push(yield* building);
      return;
    }
    const part = this.#parse("{", start, end, "null}") as JsonObject;
    yield [part, end - start];
    const [name] = Object.keys(part) as [string];
    setMember(to, name, yield* building);
  }

  /** Adds the members or items between two offsets; a long text at their end by itself, so that it is not copied. */
  *#addLast(to: Container, start: number, last: number, end: number): Generator<Part, void> {
    const opening = Array.isArray(to) ? openingOfText : openingOfMember;
    const opened = end - last < this.#maxPart ? null : opening.exec(this.#text.slice(last, last + maxOpening));
    if (opened === null) {
      yield this.#add(to, start, end);
      return;
    }
    if (last > start) yield this.#add(to, start, last - 1);
    const from = last + opened[0].length;
    yield* this.#addOne(to, last, from, this.#whole(from, end));
  }

  /** Adds the members or items between two offsets. */
  #add(to: Container, start: number, end: number): Part {
    const isArray = Array.isArray(to);
    const part = isArray ? this.#parse("[", start, end, "]") : this.#parse("{", start, end, "}");
    if (isArray) for (const item of part as Json[]) to.push(deepFreeze(item));
    else for (const [name, member] of Object.entries(part as JsonObject)) setMember(to, name, deepFreeze(member));
    return [part, end - start];
  }

  #parse(before: string, start: number, end: number, after: string): Json {
    try {
      return JSON.parse(before + this.#text.slice(start, end) + after) as Json;
    } catch (fault) {
      throw new PartFault(fault as SyntaxError, start - before.length);
    }
  }
}

function isOpening(code: number): boolean {
  return code === openBracket || code === openBrace;
}

/** `__proto__` becomes a member like any other, as `JSON.parse` makes it. */
function setMember(to: Record<string, Json>, name: string, value: Json): void {
  if (Object.hasOwn(to, name)) throw new DuplicateMember(name);
  else if (name === "__proto__")
    Object.defineProperty(to, name, { value, configurable: true, enumerable: true, writable: true });
  else to[name] = value;
}
