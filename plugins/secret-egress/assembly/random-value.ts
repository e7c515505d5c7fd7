import { byteAt } from "agent-governance-sdk/assembly";

export const longestValue: i32 = 512;
const shortestValue: i32 = 16;

/** The count of each byte in the value being weighed; zeros between two values. */
const counts = new StaticArray<i32>(256);

/** Tenths of a bit a character. */
let leastEntropy: i32 = 35;

export function setLeastEntropy(tenths: i32): void {
  leastEntropy = tenths;
}

/** Sixteen characters or more, no blank, no placeholder, and as mixed as the settings ask. */
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
  return digits >= 2 && entropyOf(from, to) * 10.0 >= <f64>leastEntropy;
}

/** Bits a byte. */
function entropyOf(from: i32, to: i32): f64 {
  const length = <f64>(to - from);
  for (let at = from; at < to; at++) counts[byteAt(at)]++;
  let bits: f64 = 0;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    if (counts[byte] === 0) continue;
    const share = <f64>counts[byte] / length;
    bits -= share * Math.log2(share);
    counts[byte] = 0;
  }
  return bits;
}

/** `${NAME}`, `<your-token>`, `{{ token }}`: a placeholder is no value. */
function isPlaceholder(from: i32, to: i32): bool {
  const first = byteAt(from);
  const last = byteAt(to - 1);
  if (first === 0x24) return byteAt(from + 1) === 0x7b && last === 0x7d;
  return (first === 0x3c && last === 0x3e) || (first === 0x7b && last === 0x7d);
}
