import { byteAt, isAlphanumeric, isDigit, isUpperOrDigit, isWordByte } from "agent-governance-sdk/assembly";

/** Sets of bytes that credentials are written in, as bits. */
export namespace Bytes {
  export const alphanumeric: u8 = 1;
  /** Those, `_` and `-`. */
  export const word: u8 = 2;
  /** Those and `.`. */
  export const dotted: u8 = 4;
  export const hex: u8 = 8;
  export const upper: u8 = 16;
  /** Bytes of base64 and base64url, with the padding. */
  export const base64: u8 = 32;
}

const longestRun: i32 = 4_096;
const sets = new StaticArray<u8>(256);

for (let value = 0; value < 256; value++) sets[value] = setsOf(<u8>value);

function setsOf(byte: u8): u8 {
  const word = isWordByte(byte);
  const letter = byte | 0x20;
  let found: u8 = 0;
  if (isAlphanumeric(byte)) found |= Bytes.alphanumeric;
  if (word) found |= Bytes.word;
  if (word || byte === 0x2e) found |= Bytes.dotted;
  if (isDigit(byte) || (letter >= 0x61 && letter <= 0x66)) found |= Bytes.hex;
  if (isUpperOrDigit(byte)) found |= Bytes.upper;
  if (word || byte === 0x2b || byte === 0x2f || byte === 0x3d) found |= Bytes.base64;
  return found;
}

export function isOf(byte: u8, set: u8): bool {
  return (unchecked(sets[byte]) & set) !== 0;
}

/** The number of bytes of a set from here on, up to 4096. */
export function runOf(at: i32, to: i32, set: u8): i32 {
  const most = min(to, at + longestRun);
  let end = at;
  while (end < most && isOf(byteAt(end), set)) end++;
  return end - at;
}
