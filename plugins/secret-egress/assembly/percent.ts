import { byteAt, lower, Span } from "agent-governance-sdk/assembly";

const width: i32 = 3;

/** Each of eight bytes 1; times a byte, each of them that byte. */
const ones: u64 = u64.MAX_VALUE / 0xff;

/** The detector reads so far behind the end of a text. */
const slack: i32 = 16;

/** A text encoded as in a URL or a form, `%20` and `+` for a blank, decoded; maps positions back to the source. */
export class PercentDecoded {
  text: Span;
  private read: i32;
  private written: i32;

  constructor(
    private from: i32,
    private to: i32,
  ) {
    const start = <i32>heap.alloc(<usize>(to - from + slack));
    let end = start;
    for (let at = from; at < to; end++) {
      const byte = percentAt(at, to);
      store<u8>(<usize>end, byte < 0 ? plainAt(at) : <u8>byte);
      at += byte < 0 ? 1 : width;
    }
    this.text = new Span(start, end);
    this.read = from;
    this.written = start;
  }

  /** The place in the source of a place in `text`; ask for places in their order. */
  sourceOf(place: i32): i32 {
    for (; this.written < place && this.read < this.to; this.written++) {
      this.read += percentAt(this.read, this.to) < 0 ? 1 : width;
    }
    return this.read;
  }
}

/** Decodes a text; null without a `%` that says something. */
export function decodePercent(from: i32, to: i32): PercentDecoded | null {
  return nextPercent(from, to) === to ? null : new PercentDecoded(from, to);
}

function plainAt(at: i32): u8 {
  const byte = byteAt(at);
  return byte === 0x2b ? 0x20 : byte;
}

/** Eight bytes at a time. */
function nextPercent(from: i32, to: i32): i32 {
  for (let at = from; at < to; at += 8) {
    const other = load<u64>(<usize>at) ^ (ones * 0x25);
    if (((other - ones) & ~other & (ones * 0x80)) === 0) continue;
    for (let place = at; place < at + 8; place++) if (percentAt(place, to) >= 0) return place;
  }
  return to;
}

/** The byte that is written here, or -1. */
function percentAt(at: i32, to: i32): i32 {
  if (byteAt(at) !== 0x25 || at + width > to) return -1;
  const high = hexDigit(byteAt(at + 1));
  const low = hexDigit(byteAt(at + 2));
  return high < 0 || low < 0 ? -1 : (high << 4) | low;
}

function hexDigit(byte: u8): i32 {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = lower(byte);
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
