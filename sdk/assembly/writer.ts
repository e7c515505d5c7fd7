import { Span } from "./span";
import { writeCode } from "./utf8";

/** The most bytes that one UTF-16 unit of a text is written with: `\u0000`. */
const widest: i32 = 6;
const longestMessage: i32 = 512;

/** Gathers JSON in UTF-8. */
export class Writer {
  private from: i32 = 0;
  private at: i32 = 0;
  private end: i32 = 0;

  /** The bytes written so far; valid until the next write. */
  get written(): Span {
    return new Span(this.from, this.at);
  }

  /** ASCII that is JSON already. */
  raw(json: string): Writer {
    this.reserve(json.length);
    for (let index = 0; index < json.length; index++) {
      store<u8>(<usize>(this.at + index), <u8>json.charCodeAt(index));
    }
    this.at += json.length;
    return this;
  }

  bytes(json: Span): Writer {
    this.reserve(json.length);
    memory.copy(<usize>this.at, <usize>json.from, <usize>json.length);
    this.at += json.length;
    return this;
  }

  /** A text as a JSON string. */
  text(text: string): Writer {
    return this.quote(text, text.length, false);
  }

  /**
   * Writes a message as the gateway accepts it: printable characters, at most 512. Characters that are invisible or
   * misleading become U+FFFD.
   */
  message(text: string): Writer {
    return this.quote(text, min(text.length, longestMessage), true);
  }

  private quote(text: string, length: i32, printable: bool): Writer {
    this.reserve(length * widest + 2);
    let at = this.at;
    store<u8>(<usize>at, 0x22);
    at++;
    for (let index = 0; index < length; index++) {
      const unit = <i32>load<u16>(changetype<usize>(text) + ((<usize>index) << 1));
      if (isPlain(unit)) {
        store<u8>(<usize>at, <u8>unit);
        at++;
        continue;
      }
      const shown = !printable || (isShown(unit) && !isEscapeLike(text, index));
      const code = shown ? text.codePointAt(index) : 0xfffd;
      if (code > 0xffff) index++;
      at = code < 0x80 ? writeEscape(at, code) : writeCode(at, code);
    }
    store<u8>(<usize>at, 0x22);
    this.at = at + 1;
    return this;
  }

  private reserve(bytes: i32): void {
    if (this.at + bytes <= this.end) return;
    const length = this.at - this.from;
    const capacity = max(2 * (this.end - this.from), length + bytes + 1_024);
    const from = <i32>heap.alloc(<usize>capacity);
    memory.copy(<usize>from, <usize>this.from, <usize>length);
    this.from = from;
    this.at = from + length;
    this.end = from + capacity;
  }
}

/** ASCII that a JSON string holds as it is. */
function isPlain(unit: i32): bool {
  return unit >= 0x20 && unit < 0x7f && unit !== 0x22 && unit !== 0x5c;
}

function writeEscape(at: i32, code: i32): i32 {
  store<u8>(<usize>at, 0x5c);
  if (code === 0x22 || code === 0x5c) {
    store<u8>(<usize>(at + 1), <u8>code);
    return at + 2;
  }
  store<u8>(<usize>(at + 1), 0x75);
  store<u8>(<usize>(at + 2), 0x30);
  store<u8>(<usize>(at + 3), 0x30);
  store<u8>(<usize>(at + 4), <u8>(0x30 + (code >> 4)));
  const low = code & 15;
  store<u8>(<usize>(at + 5), <u8>(low < 10 ? 0x30 + low : 0x57 + low));
  return at + 6;
}

/** ASCII, and blocks of letters without a gap; of other characters some show and some do not. */
function isShown(unit: i32): bool {
  if (unit < 0x7f) return unit >= 0x20;
  if (unit <= 0x2ff) return unit >= 0xa1 && unit !== 0xad;
  if (unit >= 0x391 && unit <= 0x52f) return unit !== 0x3a2;
  if (unit >= 0x2010 && unit <= 0x2026) return true;
  if (unit >= 0x3041 && unit <= 0x3096) return true;
  if (unit >= 0x30a1 && unit <= 0x30ff) return true;
  return (unit >= 0x4e00 && unit <= 0x9fef) || (unit >= 0xac00 && unit <= 0xd7a3);
}

/** `\u{` is how the gateway itself writes what is not shown. */
function isEscapeLike(text: string, at: i32): bool {
  return text.charCodeAt(at) === 0x5c && text.startsWith("u{", at + 1);
}
