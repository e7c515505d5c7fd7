import { decode } from "./decode";
import { Reader } from "./reader";
import { closingQuote, endOfLiteral, endOfValue } from "./scan";
import { byteAt, isDigit, Span, textBetween } from "./span";

/**
 * A JSON value of the input, or none: the result of a `get` without a match. Reading a value as another type, such as
 * `text()` of a number, traps, and the gateway blocks: check `isText` first, or pass a fallback.
 */
export class Value {
  /** `at` is where the value begins in the input, 0 for none. */
  constructor(
    private at: i32,
    private end: i32,
    /** JSON Pointer of the value in the action, or in the settings. */
    public pointer: string,
  ) {}

  get exists(): bool {
    return this.at !== 0;
  }

  get isText(): bool {
    return this.begins(0x22);
  }

  get isObject(): bool {
    return this.begins(0x7b);
  }

  get isList(): bool {
    return this.begins(0x5b);
  }

  get isNull(): bool {
    return this.begins(0x6e);
  }

  get isBoolean(): bool {
    return this.begins(0x74) || this.begins(0x66);
  }

  get isNumber(): bool {
    return this.exists && (this.begins(0x2d) || isDigit(byteAt(this.at)));
  }

  /** Returns true if the value is this text. */
  is(text: string): bool {
    return this.isText && this.text() === text;
  }

  text(): string {
    return this.decoded().toString();
  }

  textOr(otherwise: string): string {
    return this.isText ? this.text() : otherwise;
  }

  /** The text in UTF-8; redactions count its bytes. */
  decoded(): Span {
    if (!this.isText) unreachable();
    return decode(this.at + 1, closingQuote(this.at + 1, this.end));
  }

  boolean(): bool {
    if (!this.isBoolean) unreachable();
    return this.begins(0x74);
  }

  booleanOr(otherwise: bool): bool {
    return this.isBoolean ? this.boolean() : otherwise;
  }

  number(): f64 {
    if (!this.isNumber) unreachable();
    return F64.parseFloat(this.literal());
  }

  numberOr(otherwise: f64): f64 {
    return this.isNumber ? this.number() : otherwise;
  }

  /** A whole number; what has a fraction is none. */
  integer(): i64 {
    const value = this.number();
    if (value !== Math.trunc(value) || Math.abs(value) > <f64>F64.MAX_SAFE_INTEGER) unreachable();
    return <i64>value;
  }

  /** The items of a list, none of anything else. */
  items(): Value[] {
    const items: Value[] = [];
    if (!this.isList) return items;
    let at = this.at + 1;
    while (byteAt(at) !== 0x5d) {
      items.push(new Value(at, this.end, `${this.pointer}/${items.length}`));
      at = behind(at, this.end);
    }
    return items;
  }

  /** The value at a JSON Pointer (RFC 6901) in this value: `get("/rows/0/name")`. */
  get(pointer: string): Value {
    if (pointer.length > 0 && pointer.charCodeAt(0) !== 0x2f) unreachable();
    let at = this.at;
    let from = 1;
    while (from <= pointer.length && at !== 0) {
      const slash = pointer.indexOf("/", from);
      const to = slash < 0 ? pointer.length : slash;
      at = stepTo(at, this.end, pointer, from, to);
      from = to + 1;
    }
    return new Value(at, this.end, this.pointer.length === 0 ? pointer : this.pointer + pointer);
  }

  /** Reads all that the value holds; of none, nothing. */
  read(): Reader {
    return new Reader(this.at, this.end, this.pointer);
  }

  private literal(): string {
    return textBetween(this.at, endOfLiteral(this.at, this.end));
  }

  private begins(byte: u8): bool {
    return this.at !== 0 && byteAt(this.at) === byte;
  }
}

/** The start of the value that one step of a pointer leads to; 0 where there is none. */
function stepTo(at: i32, end: i32, pointer: string, from: i32, to: i32): i32 {
  const first = byteAt(at);
  if (first === 0x7b) return memberOf(at, end, pointer, from, to);
  return first === 0x5b ? itemOf(at, end, pointer.substring(from, to)) : 0;
}

function memberOf(object: i32, end: i32, pointer: string, from: i32, to: i32): i32 {
  let at = object + 1;
  while (byteAt(at) !== 0x7d) {
    const close = closingQuote(at + 1, end);
    if (isNamed(at + 1, close, pointer, from, to)) return close + 2;
    at = behind(close + 2, end);
  }
  return 0;
}

/** Returns true if a member's name equals this step of a pointer: by its bytes where both are plain, else decoded. */
function isNamed(start: i32, close: i32, pointer: string, from: i32, to: i32): bool {
  const length = to - from;
  let index = 0;
  while (index < length && index < close - start) {
    const byte = byteAt(start + index);
    const unit = pointer.charCodeAt(from + index);
    if (byte === 0x5c || byte >= 0x80 || unit === 0x7e) return says(start, close, pointer.substring(from, to));
    if (<u16>byte !== <u16>unit) return false;
    index++;
  }
  return index === length && index === close - start;
}

function says(start: i32, close: i32, step: string): bool {
  return decode(start, close).toString() === step.replaceAll("~1", "/").replaceAll("~0", "~");
}

function itemOf(list: i32, end: i32, step: string): i32 {
  const index = I32.parseInt(step);
  if (index.toString() !== step) return 0;
  let at = list + 1;
  for (let item = 0; byteAt(at) !== 0x5d; item++) {
    if (item === index) return at;
    at = behind(at, end);
  }
  return 0;
}

/** The place behind a value and the comma after it. */
function behind(at: i32, end: i32): i32 {
  const after = endOfValue(at, end);
  return byteAt(after) === 0x2c ? after + 1 : after;
}
