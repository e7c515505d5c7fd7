/**
 * Returns the text that Snappy compressed to `bytes`, the only compression that LevelDB uses for blocks; undefined where
 * they are no such thing, or the result would be larger than `maxBytes`.
 */
export function uncompressSnappy(bytes: Uint8Array, maxBytes: number): Buffer | undefined {
  const [length, from] = readLength(bytes);
  if (length > maxBytes) return undefined;
  const out = Buffer.alloc(length);
  let [at, to] = [from, 0];
  while (at < bytes.length) {
    const element = readElement(bytes, at);
    const { size, distance, next } = element;
    if (next > bytes.length || to + size > length || distance > to) return undefined;
    if (distance === 0) out.set(bytes.subarray(next - size, next), to);
    // Byte by byte: a copy may reach into what it writes itself.
    else for (let index = to; index < to + size; index++) out[index] = out[index - distance] as number;
    to += size;
    at = next;
  }
  return to === length ? out : undefined;
}

/** Returns the length that stands before the elements, and where they begin. An endless one is larger than any limit. */
function readLength(bytes: Uint8Array): readonly [length: number, next: number] {
  let length = 0;
  for (let at = 0; at < 5 && at < bytes.length; at++) {
    const byte = bytes[at] as number;
    length += (byte & 0x7f) * 2 ** (7 * at);
    if (byte < 0x80) return [length, at + 1];
  }
  return [Number.POSITIVE_INFINITY, 0];
}

interface Element {
  /** Bytes it adds. */
  readonly size: number;
  /** Bytes between what it copies and the end so far; 0 where it holds them itself, before `next`. */
  readonly distance: number;
  readonly next: number;
}

/** Reads past the end give 0, and an element that ends past the end. A copy from nowhere has an endless distance. */
function readElement(bytes: Uint8Array, at: number): Element {
  const tag = bytes[at] as number;
  const kind = tag & 3;
  const upper = tag >>> 2;
  if (kind === 0) {
    const sizeBytes = upper < 60 ? 0 : upper - 59;
    const size = (sizeBytes === 0 ? upper : readNumber(bytes, at + 1, sizeBytes)) + 1;
    return { size, distance: 0, next: at + 1 + sizeBytes + size };
  }
  if (kind === 1) {
    const distance = ((upper >>> 3) << 8) | (bytes[at + 1] ?? 0);
    return { size: (upper & 7) + 4, distance: distance || Number.POSITIVE_INFINITY, next: at + 2 };
  }
  const distanceBytes = kind === 2 ? 2 : 4;
  const distance = readNumber(bytes, at + 1, distanceBytes);
  return { size: upper + 1, distance: distance || Number.POSITIVE_INFINITY, next: at + 1 + distanceBytes };
}

function readNumber(bytes: Uint8Array, at: number, count: number): number {
  let number = 0;
  for (let index = count - 1; index >= 0; index--) number = number * 256 + (bytes[at + index] ?? 0);
  return number;
}
