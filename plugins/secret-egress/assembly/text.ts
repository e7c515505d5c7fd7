// The bytes of the input, and what a byte is.

let base: usize = 0;
let end: i32 = 0;

export function openText(bytes: Uint8Array): void {
  base = bytes.dataStart;
  end = bytes.length;
}

export function textEnd(): i32 {
  return end;
}

/** The byte at a place; 0 beyond the end, which no JSON text holds. */
export function byteAt(at: i32): u8 {
  return at >= 0 && at < end ? load<u8>(base + <usize>at) : 0;
}

export function textBetween(from: i32, to: i32): string {
  return String.UTF8.decodeUnsafe(base + <usize>from, <usize>(to - from));
}

/** Whether a span begins with a word, whatever the case of ASCII letters in the text; the word is in lower case. */
export function hasWord(at: i32, to: i32, word: string): bool {
  if (at + word.length > to) return false;
  for (let index = 0; index < word.length; index++) {
    if (lower(byteAt(at + index)) !== <u8>word.charCodeAt(index)) return false;
  }
  return true;
}

/** The same, with the case of the word. */
export function hasPrefix(at: i32, to: i32, prefix: string): bool {
  if (at + prefix.length > to) return false;
  for (let index = 0; index < prefix.length; index++) {
    if (byteAt(at + index) !== <u8>prefix.charCodeAt(index)) return false;
  }
  return true;
}

export function lower(byte: u8): u8 {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

export function isUpperOrDigit(byte: u8): bool {
  return isDigit(byte) || (byte >= 0x41 && byte <= 0x5a);
}

export function isDigit(byte: u8): bool {
  return byte >= 0x30 && byte <= 0x39;
}

export function isAlphanumeric(byte: u8): bool {
  return isUpperOrDigit(byte) || (byte >= 0x61 && byte <= 0x7a);
}

export function isWordByte(byte: u8): bool {
  return isAlphanumeric(byte) || byte === 0x5f || byte === 0x2d;
}
