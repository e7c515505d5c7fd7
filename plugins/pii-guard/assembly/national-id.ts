import { digitAt, groupCount, groupEnd, groupSize, groupStart, hasShape, markAfter, numberAt } from "./digit-group";
import { found, isWanted } from "./found";
import { Kind } from "./kind";
import { Bits, bitsAt, byteAt, isWordAt } from "./span";

// Identity numbers of states that put a check digit into them.

const spanishLetters: string = "TRWAGMYFPDXBNJZSQVHLCKE";

/** Such a number in the groups that were read: where it ends, or 0. */
export function nationalIdAt(): i32 {
  if (!isWanted(Kind.nationalId)) return 0;
  const from = groupStart(0);
  const to = max(max(spanishEnd(), brazilianEnd()), max(frenchEnd(), chineseEnd()));
  return to > 0 ? found(Kind.nationalId, from, to) : 0;
}

/** DNI: eight digits and a letter, which is their rest. */
function spanishEnd(): i32 {
  if (groupSize(0) !== 8 || isWordAt(groupStart(0) - 1)) return 0;
  return letterEnd(groupEnd(0), <i32>(numberAt(0, 8) % 23));
}

/** NIE of Spain, which begins with X, Y or Z: where it ends, or 0. */
export function foreignerIdAt(from: i32, to: i32): i32 {
  if (!isWanted(Kind.nationalId)) return 0;
  let number = <i32>byteAt(from) - 0x58;
  if (to - from < 8 || number < 0 || number > 2) return 0;
  for (let at = from + 1; at < from + 8; at++) {
    if ((bitsAt(at) & Bits.digit) === 0) return 0;
    number = number * 10 + byteAt(at) - 0x30;
  }
  const end = letterEnd(from + 8, number % 23);
  return end > 0 ? found(Kind.nationalId, from, end) : 0;
}

function letterEnd(at: i32, rest: i32): i32 {
  const letter = byteAt(at) === 0x2d ? at + 1 : at;
  return byteAt(letter) === <u8>spanishLetters.charCodeAt(rest) && !isWordAt(letter + 1) ? letter + 1 : 0;
}

/** CPF of Brazil, `123.456.789-09`. */
function brazilianEnd(): i32 {
  if (groupCount() < 4 || markAfter(0) !== 0x2e || markAfter(1) !== 0x2e || markAfter(2) !== 0x2d) return 0;
  if (groupSize(0) !== 3 || groupSize(1) !== 3 || groupSize(2) !== 3 || groupSize(3) !== 2) return 0;
  const ends = !isWordAt(groupStart(0) - 1) && !isWordAt(groupEnd(3));
  return ends && brazilianDigit(9) === digitAt(9) && brazilianDigit(10) === digitAt(10) ? groupEnd(3) : 0;
}

function brazilianDigit(length: i32): i32 {
  let sum = 0;
  for (let index = 0; index < length; index++) sum += digitAt(index) * (length + 1 - index);
  return ((sum * 10) % 11) % 10;
}

/** NIR of France: sex, year, month, place, order, and a key, `1 85 05 78 006 084 36` or all of it at once. */
function frenchEnd(): i32 {
  const groups = hasShape(0x0f, 1) ? 1 : hasShape(0x01020202030302, 7) ? 7 : 0;
  if (groups === 0 || digitAt(0) < 1 || digitAt(0) > 2 || !isMonth(3)) return 0;
  return 97 - (numberAt(0, 13) % 97) === numberAt(13, 2) ? groupEnd(groups - 1) : 0;
}

/** Resident identity number of China: place, date of birth, order, and a check character of ISO 7064 (mod 11-2). */
function chineseEnd(): i32 {
  const size = groupSize(0);
  const ended = size === 17 && (byteAt(groupEnd(0)) | 0x20) === 0x78;
  if (!(ended || hasShape(0x12, 1)) || isWordAt(groupStart(0) - 1) || isWordAt(groupEnd(0) + (ended ? 1 : 0))) return 0;
  const century = numberAt(6, 2);
  if ((century !== 19 && century !== 20) || !isMonth(10) || numberAt(12, 2) < 1 || numberAt(12, 2) > 31) return 0;
  let rest: i32 = ended ? 10 : digitAt(17);
  for (let index = 0; index < 17; index++) rest += digitAt(index) * chineseWeight(index);
  return rest % 11 === 1 ? groupEnd(0) + (ended ? 1 : 0) : 0;
}

/** Powers of two modulo 11, the last digit having 2. */
function chineseWeight(index: i32): i32 {
  return (1 << (17 - index)) % 11;
}

function isMonth(at: i32): bool {
  const month = numberAt(at, 2);
  return month >= 1 && month <= 12;
}
