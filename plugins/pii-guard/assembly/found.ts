import { raiseFloor } from "./span";

/** Receives each find, in the order of the text; finds of one text do not overlap. */
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

/** Sets the receiver of finds and returns the previous one. */
export function changeSink(next: Sink): Sink {
  const before = sink;
  sink = next;
  return before;
}

/** Reports a find of a requested kind. Returns where to continue. */
export function found(kind: i32, from: i32, to: i32): i32 {
  if (!isWanted(kind)) return to;
  raiseFloor(to);
  sink(kind, from, to);
  return to;
}
