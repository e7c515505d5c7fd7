import { isAlphanumeric, lower } from "agent-governance-sdk/assembly";

// Folds letters for comparison: lower case, without accents and disguises.

/** From U+00C0 and from U+0100; a blank is no letter. */
const latin: string =
  "aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty" +
  "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiijjjjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/** Invisible characters between letters that do not separate them. */
export function isInvisible(code: i32): bool {
  if (code === 0xad || code === 0x180e || code === 0xfeff) return true;
  return (code >= 0x200b && code <= 0x200f) || (code >= 0x2060 && code <= 0x2064) || isBidi(code) || isSelector(code);
}

/** Marks that change the direction of what follows. */
export function isBidi(code: i32): bool {
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/** Variation selectors, of which one at a time has a meaning. */
export function isSelector(code: i32): bool {
  return (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef);
}

/** Tags: a copy of ASCII that nothing shows. */
export function isTag(code: i32): bool {
  return code >= 0xe0020 && code <= 0xe007e;
}

/** The letter to compare, 0 where it is none, -1 for what is left out inside of words. */
export function fold(code: i32): i32 {
  if (code < 0xc0) return code === 0xad ? -1 : 0;
  if (code < 0x180) return foldLatin(code);
  if (code < 0x530) return foldGreekOrCyrillic(code);
  if (code === 0x2019 || isInvisible(code)) return -1;
  if (isTag(code)) return foldAscii(code - 0xe0000);
  if (code >= 0xff01 && code <= 0xff5e) return foldAscii(code - 0xfee0);
  if (code >= 0x1d400 && code <= 0x1d6a3) return 0x61 + ((code - 0x1d400) % 26);
  return isSeparator(code) ? 0 : code;
}

/** Accents that stand apart from their letter are left out. */
function foldGreekOrCyrillic(code: i32): i32 {
  if (code >= 0x300 && code < 0x370) return -1;
  const isUpper = (code >= 0x391 && code <= 0x3a9) || (code >= 0x410 && code <= 0x42f);
  if (isUpper) return code + 0x20;
  return code >= 0x400 && code <= 0x40f ? code + 0x50 : code;
}

function foldLatin(code: i32): i32 {
  const letter = latin.charCodeAt(code - 0xc0);
  return letter === 0x20 ? 0 : letter;
}

const ascii = new StaticArray<u8>(256);

for (let byte = 0; byte < 0x80; byte++) {
  if (isAlphanumeric(<u8>byte)) ascii[byte] = lower(<u8>byte);
}

/** The same for a byte; 0 beyond ASCII. */
export function foldByte(byte: u8): i32 {
  return unchecked(ascii[byte]);
}

function foldAscii(code: i32): i32 {
  return foldByte(<u8>code);
}

/** Punctuation and symbols, by their blocks. */
function isSeparator(code: i32): bool {
  if (code >= 0x2000 && code < 0x2c00) return true;
  if (code >= 0x3000 && code < 0x3040) return true;
  return (code >= 0xff00 && code < 0xff66) || (code >= 0x1f000 && code < 0x20000);
}

/** Scripts without blanks between words. */
export function isWide(code: i32): bool {
  return (code >= 0x3040 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3);
}

const masks: string = "аеорсухѕіјԁһкοαιυνρ";
const faces: string = "aeopcyxsijdhkoaiuvp";
const firstMasked: i32 = 0x370;
const unmasked = new StaticArray<u8>(0x1a0);

for (let at = 0; at < masks.length; at++) unmasked[masks.charCodeAt(at) - firstMasked] = <u8>faces.charCodeAt(at);

/** The Latin letter that a Cyrillic or Greek one looks like, or the letter itself. */
export function unmask(code: i32): i32 {
  if (code < firstMasked || code >= firstMasked + unmasked.length) return code;
  const face = unchecked(unmasked[code - firstMasked]);
  return face === 0 ? code : face;
}
