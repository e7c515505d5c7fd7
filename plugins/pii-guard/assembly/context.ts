import { byteAt, floorNow, hasWord, isDigit, isWordAt, openSpan, raiseFloor, spanEnd, spanStart } from "./span";

// Words that name the number behind them. Some numbers are personal data only then.

const reach: i32 = 24;
const longestName: i32 = 64;

export namespace Context {
  export const phone: i32 = 1;
  export const ssn: i32 = 2;
}

let name: usize = 0;
let nameLength: i32 = 0;
let named: i32 = -1;

/** The name of the member whose value is read next, where it has one. */
export function setName(start: usize, length: i32): void {
  name = start;
  nameLength = min(length, longestName);
  named = -1;
}

/** The words in the name, as a set; read once, and only when a number needs it. */
function saidByName(): i32 {
  if (named >= 0) return named;
  named = 0;
  const start = spanStart();
  const end = spanEnd();
  const floor = floorNow();
  openSpan(name, nameLength);
  for (let at = 0; at < nameLength; at++) named |= wordAt(at);
  openSpan(start, end);
  raiseFloor(floor);
  return named;
}

/** Returns true if the value's name, or a word shortly before a position without a number between, says so. */
export function saysBefore(at: i32, context: i32): bool {
  if ((saidByName() & context) !== 0) return true;
  for (let place = at - 1; place >= 0 && at - place <= reach && !isDigit(byteAt(place)); place--) {
    if ((wordAt(place) & context) !== 0) return true;
  }
  return false;
}

function wordAt(at: i32): i32 {
  switch (byteAt(at) | 0x20) {
    case 0x70: // p
      return hasWord(at, "phone") ? Context.phone : 0;
    case 0x77: // w
      return hasWord(at, "whatsapp") ? Context.phone : 0;
    case 0x74: // t
      return hasWord(at, "telefon") || isWholeWord(at, "tel") ? Context.phone : 0;
    case 0x6d: // m
    case 0x66: // f
    case 0x63: // c
      return isShortWord(at) ? Context.phone : 0;
    case 0x73: // s
      return isSocialSecurity(at) ? Context.ssn : 0;
    default:
      return 0;
  }
}

function isShortWord(at: i32): bool {
  return isWholeWord(at, "mobile") || isWholeWord(at, "mobil") || isWholeWord(at, "fax") || isWholeWord(at, "cell");
}

function isSocialSecurity(at: i32): bool {
  return isWholeWord(at, "ssn") || hasWord(at, "social security") || hasWord(at, "social_security");
}

function isWholeWord(at: i32, word: string): bool {
  return hasWord(at, word) && !isWordAt(at - 1) && !isWordAt(at + word.length);
}
