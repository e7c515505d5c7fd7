import { raiseFloor } from "./span";

/** Hears of each find, in the order of the text; finds of one text do not overlap. */
export type Sink = (kind: i32, from: i32, to: i32) => void;

let wanted: i32 = 0;
let sink: Sink = (_kind: i32, _from: i32, _to: i32): void => {};

/** The kinds that are asked for, as a set of bits. */
export function setWanted(kinds: i32): void {
  wanted = kinds;
}

export function isWanted(kind: i32): bool {
  return (wanted & (1 << kind)) !== 0;
}

/** Says who hears from now on, and answers who heard so far. */
export function changeSink(next: Sink): Sink {
  const before = sink;
  sink = next;
  return before;
}

/** Tells of a find, where its kind is asked for. Answers where to read on. */
export function found(kind: i32, from: i32, to: i32): i32 {
  if (!isWanted(kind)) return to;
  raiseFloor(to);
  sink(kind, from, to);
  return to;
}
