/** `short` (the default) runs random and fault tests a few times; `long` as often as a release deserves. */
const isLong = process.env.TEST_ROUNDS === "long";

/** Returns how often a random, soak or fault test repeats: `few` in every run, `many` in `npm run test:long`. */
export function roundsOf(few: number, many: number): number {
  return isLong ? many : few;
}
