import { byteAt, Span, slack } from "./span";

const shortestLine: i32 = 60;

let written: i32 = 0;
/** Bytes that a character that has begun still needs. */
let continuations: i32 = 0;

/**
 * Returns the end of a run of base64 or base64url that begins at `from`, with its padding and the line breaks of a long
 * one.
 */
export function base64End(from: i32, to: i32): i32 {
  let line = from;
  let at = from;
  for (;;) {
    while (at < to && sixBits(byteAt(at)) >= 0) at++;
    const next = at + breakWidth(at, to);
    const goesOn = next > at && next < to && at - line >= shortestLine && ((at - line) & 3) === 0;
    if (!goesOn || sixBits(byteAt(next)) < 0) break;
    at = next;
    line = next;
  }
  for (let padding = 0; padding < 2 && at < to && byteAt(at) === 0x3d; padding++) at++;
  return at;
}

function breakWidth(at: i32, to: i32): i32 {
  if (at < to && byteAt(at) === 0x0a) return 1;
  return at + 1 < to && byteAt(at) === 0x0d && byteAt(at + 1) === 0x0a ? 2 : 0;
}

/** Decodes a run of base64 up to the first byte that is not readable text; empty where it is no text. */
export function decodeBase64(from: i32, to: i32): Span {
  const start = <i32>heap.alloc(<usize>(to - from + slack));
  written = start;
  continuations = 0;
  let block: u32 = 0;
  let held: u32 = 0;
  for (let at = from; at < to; at++) {
    const value = sixBits(byteAt(at));
    if (value < 0) continue;
    block = (block << 6) | <u32>value;
    if (++held < 4) continue;
    if (!put(block, 3)) return new Span(start, written);
    held = 0;
    block = 0;
  }
  if (held > 1) put(block << ((4 - held) * 6), held - 1);
  return new Span(start, written);
}

/** Writes the upper bytes of a block of three; false at the first that is not text. */
function put(block: u32, bytes: u32): bool {
  for (let index: u32 = 0; index < bytes; index++) {
    const byte = <u8>(block >> ((2 - index) * 8));
    if (!isText(byte)) return false;
    store<u8>(<usize>written, byte);
    written++;
  }
  return true;
}

/** Returns true if a byte may come next in a UTF-8 text. */
function isText(byte: u8): bool {
  if (continuations > 0) {
    continuations--;
    return (byte & 0xc0) === 0x80;
  }
  if (byte < 0x80) return byte >= 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
  continuations = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
  return byte >= 0xc2 && byte < 0xf5;
}

/** Six bits, or -1. */
function sixBits(byte: u8): i32 {
  if (byte >= 0x61 && byte <= 0x7a) return byte - 0x47;
  if (byte >= 0x41 && byte <= 0x5a) return byte - 0x41;
  if (byte >= 0x30 && byte <= 0x39) return byte + 4;
  if (byte === 0x2b || byte === 0x2d) return 62;
  return byte === 0x2f || byte === 0x5f ? 63 : -1;
}
