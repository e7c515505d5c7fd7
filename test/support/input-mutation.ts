import { pick, type Random } from "./fuzz.ts";

const maxInput = 65_536;
/** Bytes at the edges of what parsers tell apart. */
const edges = [0x00, 0x0a, 0x0d, 0x20, 0x22, 0x2d, 0x5c, 0x7f, 0x80, 0xbf, 0xc0, 0xed, 0xef, 0xf4, 0xff];

type Change = (input: Buffer, random: Random, words: readonly string[], seeds: readonly Buffer[]) => Buffer;

const changes: readonly Change[] = [
  (input, random) => withByte(input, random, (byte) => byte ^ (1 << Math.floor(random() * 8))),
  (input, random) => withByte(input, random, () => pick(edges, random)),
  (input, random) => splice(input, random, Buffer.alloc(0)),
  (input, random) => insert(input, random, piece(input, random)),
  (input, random) =>
    insert(input, random, Buffer.concat(Array(1 + Math.floor(random() * 200)).fill(piece(input, random, 32)))),
  (input, random, words) => insert(input, random, Buffer.from(pick(words, random))),
  (input, random, words) => splice(input, random, Buffer.from(pick(words, random))),
  (input, random, _, seeds) => splice(input, random, piece(pick(seeds, random), random)),
  (input, random) => input.subarray(0, at(input, random)),
];

/** Returns one of the seeds after one to four changes, of at most 64 KiB. `words`: what means something to its reader. */
export function mutateInput(seeds: readonly Buffer[], words: readonly string[], random: Random): Buffer {
  let input = pick(seeds, random);
  for (let left = 1 + Math.floor(random() * 4); left > 0; left--)
    input = pick(changes, random)(input, random, words, seeds);
  return Buffer.from(input.subarray(0, maxInput));
}

function at(input: Buffer, random: Random): number {
  return Math.floor(random() * (input.length + 1));
}

function piece(input: Buffer, random: Random, longest = 512): Buffer {
  const start = at(input, random);
  return input.subarray(start, start + Math.ceil(random() * longest));
}

function insert(input: Buffer, random: Random, added: Buffer): Buffer {
  const place = at(input, random);
  return Buffer.concat([input.subarray(0, place), added, input.subarray(place)]);
}

function splice(input: Buffer, random: Random, added: Buffer): Buffer {
  const place = at(input, random);
  const length = Math.ceil(random() * 16);
  return Buffer.concat([input.subarray(0, place), added, input.subarray(place + length)]);
}

function withByte(input: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  const place = Math.floor(random() * copy.length);
  copy[place] = change(Number(copy[place]));
  return copy;
}
