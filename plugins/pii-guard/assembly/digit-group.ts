import { blankAt, byteAt, isDigit, isWordAt, spanStart } from "./span";

// A number as people write it: groups of digits with one mark between two of them. Each place of a long row of numbers
// begins one, so what was read is kept, and tables are read unchecked: every index is below their bounds.

const mostGroups: i32 = 7;
const mostDigits: i32 = 24;
const starts = new StaticArray<i32>(mostGroups);
const ends = new StaticArray<i32>(mostGroups);
const marks = new StaticArray<u8>(mostGroups);
const digits = new StaticArray<u8>(mostDigits);
let text: usize = 0;
let count: i32 = 0;
let total: i32 = 0;
/** The sizes of all groups, a byte each, the last one lowest. */
let sizes: u64 = 0;
/** The number of leading groups with the same mark between them. */
let alike: i32 = 0;

/** Reads the groups that begin here; a group beyond the bounds is left out. What was read already is not read again. */
export function readGroups(from: i32): void {
  if (text === spanStart() && count > 1 && unchecked(starts[1]) === from) dropFirst();
  else {
    text = spanStart();
    count = 0;
    total = 0;
    sizes = 0;
  }
  let at = count === 0 ? from : unchecked(ends[count - 1]) + markWidth(unchecked(ends[count - 1]));
  while (count < mostGroups && (count === 0 || unchecked(marks[count - 1]) !== 0)) {
    const end = readDigits(at);
    if (end === at) break;
    sizes = (sizes << 8) | <u64>(end - at);
    starts[count] = at;
    ends[count] = end;
    const width = markWidth(end);
    at = end + width;
    marks[count++] = width === 0 || !isDigit(byteAt(at)) ? 0 : width > 1 ? 0x20 : byteAt(end);
  }
  alike = 2;
  while (alike < count && unchecked(marks[alike - 1]) === unchecked(marks[0])) alike++;
}

function dropFirst(): void {
  const size = groupSize(0);
  count--;
  total -= size;
  const kept = <usize>count;
  memory.copy(changetype<usize>(starts), changetype<usize>(starts) + 4, kept * 4);
  memory.copy(changetype<usize>(ends), changetype<usize>(ends) + 4, kept * 4);
  memory.copy(changetype<usize>(marks), changetype<usize>(marks) + 1, kept);
  memory.copy(changetype<usize>(digits), changetype<usize>(digits) + <usize>size, <usize>total);
  sizes &= ((<u64>1) << (<u64>count * 8)) - 1;
}

/** Keeps the digits that begin here, and answers where they end; where they are too many, where they begin. */
function readDigits(from: i32): i32 {
  const before = total;
  let at = from;
  for (let byte = byteAt(at); isDigit(byte); byte = byteAt(at)) {
    if (total === mostDigits) {
      total = before;
      return from;
    }
    digits[total++] = byte - 0x30;
    at++;
  }
  return at;
}

function markWidth(at: i32): i32 {
  const byte = byteAt(at);
  return byte === 0x2d || byte === 0x2e || byte === 0x2f ? 1 : blankAt(at);
}

export function groupCount(): i32 {
  return count;
}

export function groupStart(index: i32): i32 {
  return unchecked(starts[index]);
}

export function groupEnd(index: i32): i32 {
  return unchecked(ends[index]);
}

export function groupSize(index: i32): i32 {
  return unchecked(ends[index]) - unchecked(starts[index]);
}

/** The mark behind a group; 0 behind the last. Every blank is a space. */
export function markAfter(index: i32): u8 {
  return unchecked(marks[index]);
}

/** The digit at a place, of all groups together. */
export function digitAt(index: i32): i32 {
  return unchecked(digits[index]);
}

/** The number that so many digits make; at most 18 of them. */
export function numberAt(index: i32, length: i32): u64 {
  let number: u64 = 0;
  for (let place = index; place < index + length; place++) number = number * 10 + unchecked(digits[place]);
  return number;
}

/** The digits in the first groups. */
export function digitsIn(groups: i32): i32 {
  let sum = 0;
  for (let index = 0; index < groups; index++) sum += groupSize(index);
  return sum;
}

/**
 * Returns true if the groups begin with groups of these sizes, a byte each (`0x030304` is 3, 3 and 4 digits), with one
 * mark throughout, and neither a letter nor more of the same at either end.
 */
export function hasShape(shape: u64, groups: i32): bool {
  if (count < groups || (groups > 2 && alike < groups)) return false;
  return sizes >> (<u64>(count - groups) * 8) === shape && standsAlone(groups);
}

/**
 * Returns true if a known number may begin with these groups without a word that names it: quick, reads the first two.
 */
export function mayBegin(): bool {
  const first = groupSize(0);
  if (count === 1) return first >= 8;
  const mark = markAfter(0);
  if (mark !== 0x20 && byteAt(groupStart(0) - 1) === mark && isWordAt(groupStart(0) - 2)) return false;
  const second = groupSize(1);
  if (digitAt(0) === 0) return first > 2 || (first === 2 && (second === 2 || second === 4));
  if (mark === 0x2e && first <= 3) return second <= 3;
  if (first === 1) return second === 2 || second === 3;
  if (first === 3) return second >= 2 && second <= 4;
  return first === 4 ? second === 4 || second === 6 : first >= 6;
}

/** Returns true if the first groups are a whole number, not a piece of a longer name, number or sequence. */
export function standsAlone(groups: i32): bool {
  const from = groupStart(0);
  const to = groupEnd(groups - 1);
  if (isWordAt(from - 1) || isWordAt(to)) return false;
  if (groups === 1) return !isJoined(from, to, 0x2e);
  return markAfter(0) === 0x20 || !isJoined(from, to, markAfter(0));
}

function isJoined(from: i32, to: i32, mark: u8): bool {
  return (byteAt(from - 1) === mark && isWordAt(from - 2)) || (byteAt(to) === mark && isWordAt(to + 1));
}

/** Returns true if another number and a blank precede the groups: they are a piece of a row, as of a table. */
export function isInRow(): bool {
  return byteAt(groupStart(0) - 1) === 0x20 && isDigit(byteAt(groupStart(0) - 2));
}
