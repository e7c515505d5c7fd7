import { byteAt, hasPrefix, isDigit } from "agent-governance-sdk/assembly";
import { Bytes, isOf } from "./byte-class";
import { isCrossedOut } from "./placeholder";

export const longestValue: i32 = 512;
const shortestValue: i32 = 16;

/** The count of each byte in the value being weighed; zeros between two values. */
const counts = new StaticArray<i32>(256);

/**
 * By how often a byte was there before: what one more adds to the sum of `n * log2(n)` over the bytes of a value. A table,
 * since a logarithm for each byte is the dearest part of the search.
 */
const steps = new StaticArray<f64>(longestValue);

for (let count = 0; count < longestValue; count++) steps[count] = weightOf(count + 1) - weightOf(count);

/** Tenths of a bit a character. */
let leastEntropy: i32 = 35;

export function setLeastEntropy(tenths: i32): void {
  leastEntropy = tenths;
}

/** Sixteen characters or more, no blank, no placeholder, no UUID or digest, and as mixed as the settings ask. */
export function looksRandom(from: i32, to: i32): bool {
  const length = to - from;
  if (length < shortestValue || length > longestValue || isPlaceholder(from, to)) return false;
  let digits = 0;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    if (byte <= 0x20) return false;
    if (byte >= 0x30 && byte <= 0x39) digits++;
  }
  // Words joined by marks are mixed too; random values contain digits.
  if (digits < 2 || isUuid(from, to) || isDigest(from, to) || isCrossedOut(from, to)) return false;
  return entropyOf(from, to) * 10.0 >= <f64>leastEntropy;
}

/** Bits a byte: those of the length less what the bytes that come again take from it. */
function entropyOf(from: i32, to: i32): f64 {
  let sum: f64 = 0;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    const count = unchecked(counts[byte]);
    sum += unchecked(steps[count]);
    counts[byte] = count + 1;
  }
  for (let at = from; at < to; at++) counts[byteAt(at)] = 0;
  const length = to - from;
  return (weightOf(length) - sum) / <f64>length;
}

function weightOf(count: i32): f64 {
  return count === 0 ? 0 : <f64>count * Math.log2(<f64>count);
}

/** `${NAME}`, `<your-token>`, `{{ token }}`, `xxxxx…`: a placeholder is no value. */
function isPlaceholder(from: i32, to: i32): bool {
  const first = byteAt(from);
  const last = byteAt(to - 1);
  if (first === 0x24) return byteAt(from + 1) === 0x7b && last === 0x7d;
  return (first === 0x3c && last === 0x3e) || (first === 0x7b && last === 0x7d);
}

function isUuid(from: i32, to: i32): bool {
  if (to - from !== 36) return false;
  for (let at = 0; at < 36; at++) {
    const isMark = at === 8 || at === 13 || at === 18 || at === 23;
    const byte = byteAt(from + at);
    if (isMark ? byte !== 0x2d : !isOf(byte, Bytes.hex)) return false;
  }
  return true;
}

/** `sha256:…`, `sha512-…`: a digest that says so. */
function isDigest(from: i32, to: i32): bool {
  if (!hasPrefix(from, to, "sha")) return false;
  let at = from + 3;
  while (at < to && isDigit(byteAt(at))) at++;
  const sign = byteAt(at);
  return at > from + 3 && at < to && (sign === 0x3a || sign === 0x2d);
}
