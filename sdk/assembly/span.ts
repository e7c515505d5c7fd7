// Places are addresses in the plugin's memory: `from` is the first byte of a text, `to` the one behind its last.

/** Bytes that may be read past the end of a text; their contents are undefined. */
export const slack: i32 = 16;

/** A run of UTF-8 bytes. */
export class Span {
  constructor(
    public from: i32,
    public to: i32,
  ) {}

  get length(): i32 {
    return this.to - this.from;
  }

  toString(): string {
    return textBetween(this.from, this.to);
  }
}

/** The byte at a place. Compare the place with the end of its text first: there is no other check. */
export function byteAt(at: i32): u8 {
  return load<u8>(<usize>at);
}

export function textBetween(from: i32, to: i32): string {
  return String.UTF8.decodeUnsafe(<usize>from, <usize>(to - from));
}

/**
 * Returns true if a span begins with a word, given in lower-case ASCII; ASCII letters of the span match in either case.
 */
export function hasWord(at: i32, to: i32, word: string): bool {
  if (at + word.length > to) return false;
  for (let index = 0; index < word.length; index++) {
    if (lower(byteAt(at + index)) !== <u8>word.charCodeAt(index)) return false;
  }
  return true;
}

/** Returns true if a span begins with this ASCII text. */
export function hasPrefix(at: i32, to: i32, prefix: string): bool {
  if (at + prefix.length > to) return false;
  for (let index = 0; index < prefix.length; index++) {
    if (byteAt(at + index) !== <u8>prefix.charCodeAt(index)) return false;
  }
  return true;
}

/** Returns true if a span equals this ASCII text. */
export function isWord(from: i32, to: i32, word: string): bool {
  return to - from === word.length && hasPrefix(from, to, word);
}

export function lower(byte: u8): u8 {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

export function isDigit(byte: u8): bool {
  return byte >= 0x30 && byte <= 0x39;
}

export function isUpperOrDigit(byte: u8): bool {
  return isDigit(byte) || (byte >= 0x41 && byte <= 0x5a);
}

export function isAlphanumeric(byte: u8): bool {
  return isUpperOrDigit(byte) || (byte >= 0x61 && byte <= 0x7a);
}

export function isWordByte(byte: u8): bool {
  return isAlphanumeric(byte) || byte === 0x5f || byte === 0x2d;
}
