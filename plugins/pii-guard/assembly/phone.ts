import { Context, saysBefore } from "./context";
import {
  digitAt,
  digitsIn,
  groupCount,
  groupEnd,
  groupSize,
  groupStart,
  hasShape,
  isInRow,
  markAfter,
  readGroups,
  standsAlone,
} from "./digit-group";
import { found, isWanted } from "./found";
import { Kind } from "./kind";
import { blankAt, byteAt, isDigit, isWordAt } from "./span";

const mostDigits: i32 = 15;
const leastDigits: i32 = 8;

/** A telephone number in the groups that were read: where it ends, or 0. */
export function phoneAt(): i32 {
  if (!isWanted(Kind.phone)) return 0;
  const groups = isInRow() ? 0 : nationalGroups();
  return groups === 0 ? saidPhoneAt() : found(Kind.phone, groupStart(0), groupEnd(groups - 1));
}

/** Finds one of any form, where a word like `phone` precedes it or is its name. */
export function saidPhoneAt(): i32 {
  if (!isWanted(Kind.phone) || !saysBefore(groupStart(0), Context.phone)) return 0;
  const groups = saidGroups();
  return groups === 0 ? 0 : found(Kind.phone, groupStart(0), groupEnd(groups - 1));
}

function nationalGroups(): i32 {
  if (hasShape(0x030304, 3) && markAfter(0) !== 0x2f && isNorthAmerican(0)) return 3;
  if (hasShape(0x01030304, 4) && digitAt(0) === 1 && isNorthAmerican(1)) return 4;
  if (digitAt(0) === 0) {
    const groups = trunkGroups();
    if (groups > 0) return groups;
  }
  return hasShape(0x030404, 3) && markAfter(0) !== 0x2f && digitAt(0) === 1 && digitAt(1) >= 3 ? 3 : 0;
}

/** Area and exchange of the North American plan begin with 2 to 9. */
function isNorthAmerican(at: i32): bool {
  return digitAt(at) >= 2 && digitAt(at + 3) >= 2 && !(digitAt(at + 1) === 1 && digitAt(at + 2) === 1);
}

/** Numbers that begin with 0, as Europe and Japan write them, or with 00 and a country. */
function trunkGroups(): i32 {
  if (hasShape(0x0202020202, 5) && digitAt(1) !== 0) return 5;
  if (hasShape(0x020404, 3) && markAfter(0) === 0x2d) return 3;
  const least = digitAt(1) === 0 ? 11 : 10;
  const most = digitAt(1) === 0 ? mostDigits : 11;
  if (groupCount() < 2 || groupSize(0) < 3 || groupSize(0) > 6 || markAfter(0) === 0x2e) return 0;
  for (let groups = min(groupCount(), 5); groups > 1; groups--) {
    const size = digitsIn(groups);
    if (size >= least && size <= most && groupSize(groups - 1) > 1 && standsAlone(groups)) return groups;
  }
  return 0;
}

/** Behind a word like `phone`: as many groups as make a number. */
function saidGroups(): i32 {
  for (let groups = groupCount(); groups > 0; groups--) {
    const size = digitsIn(groups);
    if (size >= 7 && size <= mostDigits && standsAlone(groups)) return groups;
  }
  return 0;
}

/** `+` and the whole number behind it. Answers where to read on. */
export function plusPhoneAt(at: i32): i32 {
  const next = at + 1;
  if (!isWanted(Kind.phone) || isWordAt(at - 1) || byteAt(next) < 0x31 || byteAt(next) > 0x39) return next;
  const most = byteAt(next) === 0x31 ? 11 : mostDigits;
  let digits = 0;
  let to = next;
  for (let place = next; digits < most; ) {
    if (isDigit(byteAt(place))) {
      digits++;
      place++;
      to = place;
    } else {
      const width = marksAt(place);
      if (width === 0) break;
      place += width;
    }
  }
  if (digits < (most === 11 ? 11 : leastDigits) || isWordAt(to)) return next;
  return found(Kind.phone, at, to);
}

/** Up to two marks between digits, such as `) `. */
function marksAt(at: i32): i32 {
  let width = markAt(at);
  if (width > 0) width += markAt(at + width);
  return width > 0 && (isDigit(byteAt(at + width)) || byteAt(at + width) === 0x28) ? width : 0;
}

function markAt(at: i32): i32 {
  const byte = byteAt(at);
  return byte === 0x2d || byte === 0x2e || byte === 0x2f || byte === 0x28 || byte === 0x29 ? 1 : blankAt(at);
}

/** `(area) number`. Answers where to read on. */
export function bracketPhoneAt(at: i32): i32 {
  const next = at + 1;
  let close = next;
  while (close - next < 6 && isDigit(byteAt(close))) close++;
  if (!isWanted(Kind.phone) || close - next < 2 || byteAt(close) !== 0x29) return next;
  const first = byteAt(next);
  const area = close - next;
  readGroups(close + 1 + blankAt(close + 1));
  const groups = bracketGroups(first, area);
  return groups === 0 ? next : found(Kind.phone, at, groupEnd(groups - 1));
}

function bracketGroups(first: u8, area: i32): i32 {
  if (groupCount() === 0) return 0;
  if (area === 3 && first >= 0x32 && endsWell(0x0304)) return 2;
  if (area === 2 && first >= 0x31 && (endsWell(0x0504) || endsWell(0x0404))) return 2;
  if (first !== 0x30) return 0;
  for (let groups = min(groupCount(), 4); groups > 0; groups--) {
    const size = digitsIn(groups) + area;
    if (size >= 8 && size <= 12 && !isWordAt(groupEnd(groups - 1))) return groups;
  }
  return 0;
}

function endsWell(shape: i32): bool {
  return groupCount() > 1 && groupSize(0) === shape >> 8 && groupSize(1) === (shape & 0xff) && !isWordAt(groupEnd(1));
}
