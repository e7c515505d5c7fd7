import { byteAt, hasPrefix, isDigit } from "agent-governance-sdk/assembly";
import { Bytes, isOf, runOf } from "./byte-class";
import { endsInChecksum } from "./checksum";
import { isCrossedOut, isStandIn } from "./placeholder";
import { Rule, Shape, shapes } from "./shape-table";

const checkedLength: i32 = 36;

/** By the first two bytes of a prefix, folded: the first shape that may begin so; -1 where none does. */
const firsts = new StaticArray<i32>(1_024).fill(-1);

/** Backwards, so that each chain is in the order of the table. */
for (let index = shapes.length - 1; index >= 0; index--) {
  const shape = shapes[index];
  const pair = pairOf(<u8>shape.prefix.charCodeAt(0), <u8>shape.prefix.charCodeAt(1));
  shape.next = firsts[pair];
  firsts[pair] = index;
}

/** The lower five bits of two bytes: letters alike in either case. */
export function pairOf(first: u8, second: u8): i32 {
  return ((<i32>first & 31) << 5) | (<i32>second & 31);
}

/** Returns true if a shape may begin with this pair. */
export function beginsShape(pair: i32): bool {
  return firsts[pair] >= 0;
}

/** The shape that this place begins; null where none does. `endOfShape` says where it ends. */
export function shapeAt(at: i32, to: i32): Shape | null {
  for (let index = unchecked(firsts[pairOf(byteAt(at), byteAt(at + 1))]); index >= 0; ) {
    const shape = shapes[index];
    if (hasPrefix(at, to, shape.prefix) && fits(shape, at + shape.prefix.length, to)) return shape;
    index = shape.next;
  }
  return null;
}

export function endOfShape(shape: Shape, at: i32, to: i32): i32 {
  const start = at + shape.prefix.length;
  const dotted = shape.rule === Rule.airtable || shape.rule === Rule.telegram;
  if (!dotted) return start + runOf(start, to, shape.bytes);
  const mark = start + runOf(start, to, Bytes.alphanumeric) + 1;
  return mark + runOf(mark, to, Bytes.word);
}

function fits(shape: Shape, start: i32, to: i32): bool {
  if (shape.rule === Rule.alone) return true;
  if (shape.rule === Rule.telegram) return isBotToken(start, to);
  const limit = shape.most === 0 ? shape.least : shape.most + 1;
  const run = runOf(start, min(to, start + limit), shape.bytes);
  if (run < shape.least || (shape.most > 0 && run > shape.most)) return false;
  const end = start + shape.least;
  if (shape.rule === Rule.lenient) return !isCrossedOut(start, end);
  if (shape.rule === Rule.airtable && !isAirtable(end, to)) return false;
  return (shape.rule === Rule.checked && isChecked(start, to)) || !isStandIn(start, end);
}

/** Returns true for right check digits: then it is no placeholder, whatever it looks like. */
function isChecked(start: i32, to: i32): bool {
  return runOf(start, to, Bytes.alphanumeric) === checkedLength && endsInChecksum(start, start + checkedLength);
}

function isAirtable(mark: i32, to: i32): bool {
  return mark < to && byteAt(mark) === 0x2e && runOf(mark + 1, to, Bytes.hex) === 64;
}

/** `12345678:AA…`, as it stands alone and behind `bot` in the address of a request. */
export function isBotToken(at: i32, to: i32): bool {
  let mark = at;
  while (mark < to && mark - at < 11 && isDigit(byteAt(mark))) mark++;
  if (mark - at < 8 || mark - at > 10 || !hasPrefix(mark, to, ":AA")) return false;
  const run = runOf(mark + 1, min(to, mark + 40), Bytes.word);
  return run >= 33 && run <= 36 && !isCrossedOut(mark + 1, mark + 1 + run) && isOf(byteAt(mark + 3), Bytes.word);
}
