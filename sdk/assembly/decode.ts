import { byteAt, Span, slack } from "./span";
import { writeCode } from "./utf8";

/**
 * What a JSON text says, in UTF-8, without its escapes: the text itself where it has none. A surrogate
 * that stands alone is U+FFFD, as in every encoder of UTF-8.
 */
export function decode(from: i32, to: i32): Span {
  let at = from;
  while (at < to && byteAt(at) !== 0x5c) at++;
  if (at === to) return new Span(from, to);
  // No escape says more bytes than it is written with.
  const start = <i32>heap.alloc(<usize>(to - from + slack));
  memory.copy(<usize>start, <usize>from, <usize>(at - from));
  let end = start + at - from;
  while (at < to) {
    const byte = byteAt(at);
    if (byte !== 0x5c) {
      store<u8>(<usize>end, byte);
      end++;
      at++;
    } else if (byteAt(at + 1) === 0x75) {
      const unit = hexAt(at + 2);
      at += 6;
      const low = isHigh(unit) && at + 6 <= to && isEscape(at) ? hexAt(at + 2) : 0;
      const paired = isLow(low);
      if (paired) at += 6;
      end = writeCode(end, paired ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : unit);
    } else {
      store<u8>(<usize>end, shortEscape(byteAt(at + 1)));
      end++;
      at += 2;
    }
  }
  memory.fill(<usize>end, 0, slack);
  return new Span(start, end);
}

function isEscape(at: i32): bool {
  return byteAt(at) === 0x5c && byteAt(at + 1) === 0x75;
}

function isHigh(unit: i32): bool {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: i32): bool {
  return unit >= 0xdc00 && unit < 0xe000;
}

function hexAt(at: i32): i32 {
  let value = 0;
  for (let index = 0; index < 4; index++) {
    const byte = <i32>byteAt(at + index);
    value = (value << 4) | (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57);
  }
  return value;
}

function shortEscape(letter: u8): u8 {
  switch (letter) {
    case 0x62: // b
      return 0x08;
    case 0x66: // f
      return 0x0c;
    case 0x6e: // n
      return 0x0a;
    case 0x72: // r
      return 0x0d;
    case 0x74: // t
      return 0x09;
    default:
      return letter;
  }
}
