import { found, isWanted } from "./found";
import { Kind } from "./kind";
import { Bits, bitsAt, byteAt, isWordAt } from "./span";

// The machine-readable zone of a passport (ICAO 9303, TD3): two lines of 44 characters, the second with check digits.

const lineLength: i32 = 44;

/** The second line where it begins here: where it ends, or 0. The line before it, with the name, is found with it. */
export function travelDocumentAt(from: i32): i32 {
  if (!isWanted(Kind.nationalId) || !hasCheck(from + 9) || !hasCheck(from + 19) || !hasCheck(from + 27)) return 0;
  const to = from + lineLength;
  if (!isZone(from, to) || isWordAt(to)) return 0;
  if (!checks(from, 9) || !checks(from + 13, 6) || !checks(from + 21, 6)) return 0;
  return found(Kind.nationalId, nameStart(from), to);
}

function hasCheck(at: i32): bool {
  return (bitsAt(at) & Bits.digit) !== 0;
}

function isZone(from: i32, to: i32): bool {
  for (let at = from; at < to; at++) if (valueAt(at) < 0) return false;
  return true;
}

/** Weights 7, 3 and 1 over `length` characters, and their check digit behind them. */
function checks(from: i32, length: i32): bool {
  let sum = 0;
  for (let index = 0; index < length; index++) {
    const weight = index % 3 === 0 ? 7 : index % 3 === 1 ? 3 : 1;
    sum += valueAt(from + index) * weight;
  }
  return sum % 10 === valueAt(from + length);
}

function valueAt(at: i32): i32 {
  const byte = byteAt(at);
  if (byte === 0x3c) return 0;
  const bits = bitsAt(at);
  if ((bits & Bits.digit) !== 0) return byte - 0x30;
  return (bits & Bits.upper) !== 0 ? byte - 0x37 : -1;
}

function nameStart(from: i32): i32 {
  const lineEnd = byteAt(from - 2) === 0x0d ? from - 2 : from - 1;
  const start = lineEnd - lineLength;
  return byteAt(from - 1) === 0x0a && byteAt(start) === 0x50 && isZone(start, lineEnd) ? start : from;
}
