import { byteAt } from "./span";

const replacement: i32 = 0xfffd;

/** Bytes of the escape that was read last. */
export let escapeWidth: i32 = 0;

/** The character of an escape; a backslash that begins none is itself. */
export function readEscape(at: i32, to: i32): i32 {
  escapeWidth = 2;
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
      escapeWidth = 1;
      return 0x5c;
  }
}

/** `\uXXXX`, or two of them that are one character. */
function readUnicode(at: i32, to: i32): i32 {
  const unit = readHex(at + 2, to);
  if (unit < 0) {
    escapeWidth = 1;
    return 0x5c;
  }
  escapeWidth = 6;
  if ((unit & 0xf800) !== 0xd800) return unit;
  const isPair = unit < 0xdc00 && at + 8 < to && byteAt(at + 6) === 0x5c && byteAt(at + 7) === 0x75;
  const low = isPair ? readHex(at + 8, to) : -1;
  if (low < 0xdc00 || low > 0xdfff) return replacement;
  escapeWidth = 12;
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
