import { roundsOf } from "./rounds.ts";

/** Returns numbers from 0 to 1. */
export type Random = () => number;

/** The seed of a run of mutations; `FUZZ_SEED` repeats one that failed. */
export const fuzzSeed = Number(process.env.FUZZ_SEED ?? 1);

/** Returns how many inputs a fuzzer tries: `FUZZ_INPUTS`, else `few`, or 100,000 in `npm run test:long`. */
export function fuzzInputs(few: number): number {
  return Number(process.env.FUZZ_INPUTS ?? roundsOf(few, 100_000));
}

/** `FUZZ_MINUTES`: minutes that the fuzzers of a file have together in a run by hand; 0 where they try a count of inputs. */
export const fuzzMinutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** Tells a fuzzer when it has tried enough. */
export class FuzzBudget {
  readonly #inputs: number;
  readonly #endMs: number;

  /** `inputs`: where no minutes are given. `sharers`: fuzzers between which the minutes are divided. */
  constructor(inputs: number, sharers: number) {
    this.#inputs = inputs;
    this.#endMs = performance.now() + (fuzzMinutes * 60_000) / sharers;
  }

  /** Returns true where one more input may be tried after so many. */
  hasRoom(tried: number): boolean {
    return fuzzMinutes > 0 ? performance.now() < this.#endMs : tried < this.#inputs;
  }
}

/** Mulberry32: the same numbers for the same seed. */
export function randomFrom(start: number): Random {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function pick<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Returns the milliseconds of processor time that the call takes, with the kernel's. */
export function processorMs(call: () => void): number {
  const start = process.cpuUsage();
  call();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** The most of processor time for one input: some thousand times what one takes, so that a slow machine is no failure. */
export const maxInputMs = 2_000;
