import { byteAt, Span, slack } from "./span";
import { writeCode } from "./utf8";

const replacement: i32 = 0xfffd;

/** Bytes of the escape that was read last. */
let width: i32 = 0;

/**
 * What a text says whose escapes are those of JSON, such as JSON inside a JSON text, and the way back to where it stood.
 * What is no escape stays as it is.
 */
export class Unescaped {
  text: Span;
  private read: i32;
  private written: i32;

  constructor(
    private from: i32,
    private to: i32,
  ) {
    const start = <i32>heap.alloc(<usize>(to - from + slack));
    let end = start;
    for (let at = from; at < to; ) {
      if (byteAt(at) !== 0x5c) {
        store<u8>(<usize>end, byteAt(at));
        end++;
        at++;
        continue;
      }
      end = writeCode(end, readEscape(at, to));
      at += width;
    }
    this.text = new Span(start, end);
    this.read = from;
    this.written = start;
  }

  /** Whether an escape was undone. */
  get isOther(): bool {
    return this.text.length !== this.to - this.from;
  }

  /** The place in the source of a place in `text`; ask for places in their order. */
  sourceOf(place: i32): i32 {
    while (this.written < place && this.read < this.to) {
      if (byteAt(this.read) !== 0x5c) {
        this.written++;
        this.read++;
      } else {
        this.written += sizeOf(readEscape(this.read, this.to));
        this.read += width;
      }
    }
    return this.read;
  }
}

/** The character of an escape; a backslash that begins none is itself. */
function readEscape(at: i32, to: i32): i32 {
  width = 2;
  switch (at + 1 < to ? byteAt(at + 1) : 0) {
    case 0x22:
      return 0x22;
    case 0x5c:
      return 0x5c;
    case 0x2f:
      return 0x2f;
    case 0x62:
      return 0x08;
    case 0x66:
      return 0x0c;
    case 0x6e:
      return 0x0a;
    case 0x72:
      return 0x0d;
    case 0x74:
      return 0x09;
    case 0x75:
      return readUnicode(at, to);
    default:
      width = 1;
      return 0x5c;
  }
}

/** `\uXXXX`, or two of them that are one character. */
function readUnicode(at: i32, to: i32): i32 {
  const unit = readHex(at + 2, to);
  if (unit < 0) {
    width = 1;
    return 0x5c;
  }
  width = 6;
  if ((unit & 0xf800) !== 0xd800) return unit;
  const isPair = unit < 0xdc00 && at + 8 < to && byteAt(at + 6) === 0x5c && byteAt(at + 7) === 0x75;
  const low = isPair ? readHex(at + 8, to) : -1;
  if (low < 0xdc00 || low > 0xdfff) return replacement;
  width = 12;
  return 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
}

/** Four hexadecimal digits, or -1. */
function readHex(at: i32, to: i32): i32 {
  if (at + 4 > to) return -1;
  let value = 0;
  for (let place = at; place < at + 4; place++) {
    const byte = byteAt(place);
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) value = (value << 4) | (byte - 0x30);
    else if (letter >= 0x61 && letter <= 0x66) value = (value << 4) | (letter - 0x57);
    else return -1;
  }
  return value;
}

function sizeOf(character: i32): i32 {
  return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}
