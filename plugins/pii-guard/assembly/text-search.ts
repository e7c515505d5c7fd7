import { Unescaped } from "agent-governance-sdk/assembly";
import { changeSink } from "./found";
import { scan } from "./scan";
import { openSpan } from "./span";

/** Finds in one text; beyond so many the last grows to hold the rest. */
const mostFinds: i32 = 128;
const kinds = new StaticArray<i32>(mostFinds);
const starts = new StaticArray<i32>(mostFinds);
const ends = new StaticArray<i32>(mostFinds);
let count: i32 = 0;

/** Finds in the text below the escapes come first; what a later find overlaps with is looked for from here. */
let innerCount: i32 = 0;
let cursor: i32 = 0;
let inner: Unescaped | null = null;
let outerFrom: i32 = 0;

export function findKind(index: i32): i32 {
  return kinds[index];
}

export function findStart(index: i32): i32 {
  return starts[index];
}

export function findEnd(index: i32): i32 {
  return ends[index];
}

/**
 * Finds personal data in a text, and, where it may be JSON itself, in what its escapes say. Answers how many places
 * there are, counted in the bytes of the text.
 */
export function search(from: i32, to: i32, mayEscape: bool): i32 {
  count = 0;
  cursor = 0;
  if (mayEscape) searchInner(from, to);
  innerCount = count;
  openSpan(<usize>from, to - from);
  changeSink((kind: i32, first: i32, end: i32): void => addOuter(kind, first, end));
  scan();
  return count;
}

function searchInner(from: i32, to: i32): void {
  const unescaped = new Unescaped(from, to);
  if (!unescaped.isOther) return;
  inner = unescaped;
  outerFrom = from;
  openSpan(<usize>unescaped.text.from, unescaped.text.length);
  changeSink((kind: i32, first: i32, end: i32): void => addInner(kind, first, end));
  scan();
}

function addInner(kind: i32, from: i32, to: i32): void {
  const unescaped = inner;
  if (unescaped === null) return;
  const first = unescaped.sourceOf(unescaped.text.from + from) - outerFrom;
  add(kind, first, unescaped.sourceOf(unescaped.text.from + to) - outerFrom);
}

function addOuter(kind: i32, from: i32, to: i32): void {
  while (cursor < innerCount && ends[cursor] <= from) cursor++;
  if (cursor === innerCount || starts[cursor] >= to) add(kind, from, to);
}

function add(kind: i32, from: i32, to: i32): void {
  if (count === mostFinds) {
    starts[count - 1] = min(starts[count - 1], from);
    ends[count - 1] = max(ends[count - 1], to);
    return;
  }
  kinds[count] = kind;
  starts[count] = from;
  ends[count] = to;
  count++;
}
