import { escapeWidth, readEscape } from "./escape";
import { byteAt, Span, slack } from "./span";
import { writeCode } from "./utf8";

/**
 * Undoes the JSON escapes of a text, such as JSON inside a JSON text, and maps positions back to the source. Keeps
 * anything that is not an escape.
 */
export class Unescaped {
  text: Span;
  private read: i32;
  private written: i32;

  constructor(
    private from: i32,
    private to: i32,
  ) {
    const start = <i32>heap.alloc(<usize>(to - from + slack));
    let end = start;
    for (let at = from; at < to; ) {
      if (byteAt(at) !== 0x5c) {
        store<u8>(<usize>end, byteAt(at));
        end++;
        at++;
        continue;
      }
      end = writeCode(end, readEscape(at, to));
      at += escapeWidth;
    }
    this.text = new Span(start, end);
    this.read = from;
    this.written = start;
  }

  /** True where an escape was undone. */
  get isOther(): bool {
    return this.text.length !== this.to - this.from;
  }

  /** The place in the source of a place in `text`; ask for places in their order. */
  sourceOf(place: i32): i32 {
    while (this.written < place && this.read < this.to) {
      if (byteAt(this.read) !== 0x5c) {
        this.written++;
        this.read++;
      } else {
        this.written += sizeOf(readEscape(this.read, this.to));
        this.read += escapeWidth;
      }
    }
    return this.read;
  }
}

function sizeOf(character: i32): i32 {
  return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}
