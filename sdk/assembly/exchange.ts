import { alloc, inputLength, inputLoadU8, inputLoadU64, outputSet, storeU8, storeU64 } from "./abi";
import { Span, slack } from "./span";

/** The call's input, copied into the plugin's memory. */
export function readInput(): Span {
  const length = <i32>inputLength();
  const from = <i32>heap.alloc(<usize>(length + slack));
  const whole = length & ~7;
  for (let at = 0; at < whole; at += 8) store<u64>(<usize>(from + at), inputLoadU64(at));
  for (let at = whole; at < length; at++) store<u8>(<usize>(from + at), inputLoadU8(at));
  memory.fill(<usize>(from + length), 0, slack);
  return new Span(from, from + length);
}

/** Answers the call. */
export function writeOutput(json: Span): void {
  const length = json.length;
  const offset = alloc(length);
  const whole = length & ~7;
  for (let at = 0; at < whole; at += 8) storeU64(offset + at, load<u64>(<usize>(json.from + at)));
  for (let at = whole; at < length; at++) storeU8(offset + at, load<u8>(<usize>(json.from + at)));
  outputSet(offset, length);
}
