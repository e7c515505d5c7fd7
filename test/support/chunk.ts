import fc from "fast-check";

/** Cuts bytes at random places, which may lie inside a character or between a return and its feed. */
export const cuts: fc.Arbitrary<readonly number[]> = fc.array(fc.nat(2_000), { maxLength: 40 });

export function cutBytes(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}
