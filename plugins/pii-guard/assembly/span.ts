// The bytes being searched, and what a byte is.

let base: usize = 0;
let end: i32 = 0;
/** Nothing that begins before it is found any more: it was found already. */
let floor: i32 = 0;

/** Searches other bytes from now on. */
export function openSpan(start: usize, length: i32): void {
  base = start;
  end = length;
  floor = 0;
}

export function spanStart(): usize {
  return base;
}

export function spanEnd(): i32 {
  return end;
}

export function floorNow(): i32 {
  return floor;
}

export function raiseFloor(at: i32): void {
  floor = at;
}

/** The byte at a place; 0 outside. */
export function byteAt(at: i32): u8 {
  return <u32>at < <u32>end ? load<u8>(base + <usize>at) : 0;
}

export namespace Bits {
  export const digit: u8 = 1;
  export const letter: u8 = 2;
  export const upper: u8 = 4;
  export const trigger: u8 = 8;
}

const classes = new StaticArray<u8>(256);

for (let byte = 0; byte < 256; byte++) {
  let bits: u8 = 0;
  if (byte >= 0x30 && byte <= 0x39) bits = Bits.digit;
  else if (byte >= 0x41 && byte <= 0x5a) bits = Bits.letter | Bits.upper;
  else if (byte >= 0x61 && byte <= 0x7a) bits = Bits.letter;
  else if (byte === 0x40 || byte === 0x2b || byte === 0x28 || byte === 0x25) bits = Bits.trigger;
  classes[byte] = bits;
}

export function bitsAt(at: i32): u8 {
  return unchecked(classes[byteAt(at)]);
}

export function isDigit(byte: u8): bool {
  return byte >= 0x30 && byte <= 0x39;
}

/** Returns true for an ASCII letter or digit here. */
export function isWordAt(at: i32): bool {
  return (bitsAt(at) & (Bits.digit | Bits.letter)) !== 0;
}

/** The bytes of a blank here, a no-break space being one; 0 without one. */
export function blankAt(at: i32): i32 {
  const byte = byteAt(at);
  if (byte === 0x20) return 1;
  if (byte === 0xc2 && byteAt(at + 1) === 0xa0) return 2;
  return byte === 0xe2 && byteAt(at + 1) === 0x80 && byteAt(at + 2) === 0xaf ? 3 : 0;
}

/** Returns true if a word, given in lower case, is here in any case. */
export function hasWord(at: i32, word: string): bool {
  if (at < 0 || at + word.length > end) return false;
  for (let index = 0; index < word.length; index++) {
    const byte = byteAt(at + index);
    const lower: u8 = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
    if (lower !== <u8>word.charCodeAt(index)) return false;
  }
  return true;
}
