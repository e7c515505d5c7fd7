import { escapeWidth, readEscape } from "./escape";
import { nextEscape } from "./scan";
import { Span, slack } from "./span";
import { writeCode } from "./utf8";

/**
 * Decodes a JSON text to UTF-8 without its escapes: the text itself where it has none. A lone surrogate becomes U+FFFD,
 * as in every encoder of UTF-8.
 */
export function decode(from: i32, to: i32): Span {
  let next = nextEscape(from, to);
  if (next === to) return new Span(from, to);
  // No escape decodes to more bytes than it is written with.
  const start = <i32>heap.alloc(<usize>(to - from + slack));
  let end = start;
  let at = from;
  while (next < to) {
    memory.copy(<usize>end, <usize>at, <usize>(next - at));
    end = writeCode(end + next - at, readEscape(next, to));
    at = next + escapeWidth;
    next = nextEscape(at, to);
  }
  memory.copy(<usize>end, <usize>at, <usize>(to - at));
  end += to - at;
  memory.fill(<usize>end, 0, slack);
  return new Span(start, end);
}
