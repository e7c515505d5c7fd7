import { byteAt, textBetween, textEnd } from "./text";

/** Levels of JSON; beyond them the plugin traps, which blocks. */
const deepest: i32 = 200;

/** The way to the value being read: each step a member's name as it stands in the text, or an index. */
const starts = new StaticArray<i32>(deepest);
const ends = new StaticArray<i32>(deepest);
let depth: i32 = 0;
let at: i32 = 0;

export function depthNow(): i32 {
  return depth;
}

/** Whether a step of the way is a member of this name. */
export function stepIs(step: i32, name: string): bool {
  if (step >= depth || starts[step] < 0 || ends[step] - starts[step] !== name.length) return false;
  for (let index = 0; index < name.length; index++) {
    if (byteAt(starts[step] + index) !== <u8>name.charCodeAt(index)) return false;
  }
  return true;
}

export function stepStart(step: i32): i32 {
  return starts[step];
}

export function stepEnd(step: i32): i32 {
  return ends[step];
}

/** JSON Pointer of the steps from one to another, inside a JSON text: what was escaped there still is. */
export function pointerOf(first: i32, last: i32): string {
  let pointer = "";
  for (let step = first; step < last; step++) {
    const name = starts[step] < 0 ? (~starts[step]).toString() : textBetween(starts[step], ends[step]);
    pointer += `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return pointer;
}

export type TextSink = (from: i32, to: i32, isName: bool) => void;

/** Reads one JSON value and tells `sink` of each name, text and literal in it, in their order. */
export function walk(sink: TextSink): void {
  at = 0;
  depth = 0;
  readValue(sink);
}

/** The text is the host's own and well formed: each value ends where its kind says. */
function readValue(sink: TextSink): void {
  const first = byteAt(at);
  if (first === 0x7b) readObject(sink);
  else if (first === 0x5b) readArray(sink);
  else if (first === 0x22) {
    const from = at + 1;
    skipText();
    sink(from, at - 1, false);
  } else {
    const from = at;
    skipLiteral();
    sink(from, at, false);
  }
}

function readObject(sink: TextSink): void {
  at++;
  const step = enter();
  while (byteAt(at) !== 0x7d && at < textEnd()) {
    if (byteAt(at) === 0x2c) at++;
    const from = at + 1;
    skipText();
    starts[step] = from;
    ends[step] = at - 1;
    sink(from, at - 1, true);
    at++; // the colon
    readValue(sink);
  }
  leave();
}

function readArray(sink: TextSink): void {
  at++;
  const step = enter();
  for (let index = 0; byteAt(at) !== 0x5d && at < textEnd(); index++) {
    if (byteAt(at) === 0x2c) at++;
    starts[step] = ~index;
    readValue(sink);
  }
  leave();
}

function enter(): i32 {
  if (depth >= deepest) unreachable();
  return depth++;
}

function leave(): void {
  depth--;
  at++;
}

/** From a quotation mark to behind the one that closes it. */
function skipText(): void {
  at++;
  for (let byte = byteAt(at); byte !== 0x22 && at < textEnd(); byte = byteAt(at)) at += byte === 0x5c ? 2 : 1;
  at++;
}

function skipLiteral(): void {
  for (let byte = byteAt(at); byte !== 0x2c && byte !== 0x7d && byte !== 0x5d && at < textEnd(); byte = byteAt(at))
    at++;
}
