import { byteAt } from "./span";

/** Each of eight bytes 1; times a byte, each of them that byte. */
const ones: u64 = u64.MAX_VALUE / 0xff;
const highs: u64 = ones * 0x80;

/** The place of the quotation mark that closes a JSON text, from a place inside it. Eight bytes at a time. */
export function closingQuote(inside: i32, end: i32): i32 {
  let at = inside;
  while (at < end) {
    const word = load<u64>(<usize>at);
    const quote = word ^ (ones * 0x22);
    const backslash = word ^ (ones * 0x5c);
    // A byte that is 0 leaves its high bit set, and the lowest bit that is set belongs to such a byte.
    const found = (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) & highs;
    if (found === 0) {
      at += 8;
      continue;
    }
    at += <i32>(ctz(found) >> 3);
    if (byteAt(at) === 0x22) return at;
    at += 2;
  }
  return unreachable();
}

/** The place of the next backslash of a JSON text, `to` where there is none. Eight bytes at a time. */
export function nextEscape(from: i32, to: i32): i32 {
  for (let at = from; at < to; at += 8) {
    const backslash = load<u64>(<usize>at) ^ (ones * 0x5c);
    const found = (backslash - ones) & ~backslash & highs;
    if (found !== 0) return min(to, at + <i32>(ctz(found) >> 3));
  }
  return to;
}

/** The place behind a number, `true`, `false` or `null`. */
export function endOfLiteral(from: i32, end: i32): i32 {
  let at = from;
  while (at < end) {
    const byte = byteAt(at);
    if (byte === 0x2c || byte === 0x7d || byte === 0x5d) break;
    at++;
  }
  return at;
}

/** The place behind a JSON value, whatever it holds. */
export function endOfValue(from: i32, end: i32): i32 {
  const first = byteAt(from);
  if (first === 0x22) return closingQuote(from + 1, end) + 1;
  if (first !== 0x7b && first !== 0x5b) return endOfLiteral(from, end);
  let depth = 0;
  let at = from;
  while (at < end) {
    const byte = byteAt(at);
    if (byte === 0x22) at = closingQuote(at + 1, end);
    else if (byte === 0x7b || byte === 0x5b) depth++;
    else if ((byte === 0x7d || byte === 0x5d) && --depth === 0) return at + 1;
    at++;
  }
  return unreachable();
}
