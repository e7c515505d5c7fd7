import { setTimeout as sleep } from "node:timers/promises";
import { Turns } from "../action/turns.ts";

const elapsedMs = performance.now.bind(performance);

/** Returns turns for long work that somebody waits for. `pause` resolves once others had theirs. */
export function turnsOf(pause: () => Promise<void>): Turns {
  return new Turns(pause, elapsedMs);
}

/** A quarter of the event loop's time, two milliseconds at once: for work that nobody waits for. */
export const backgroundPace = { sliceMs: 2, restRatio: 3 } as const;

/** The slices of some work and the rests between them. */
export interface Rhythm {
  /** Time for which the work may hold the event loop. */
  readonly sliceMs: number;
  /** Rests last so many times as long as the slice before. */
  readonly restRatio: number;
}

interface PaceOptions extends Rhythm {
  /** Monotonic, with fractions of a millisecond. */
  readonly elapsedMs: () => number;
  /** Ends the work at its next rest. */
  readonly signal?: AbortSignal;
}

/** Cuts long work of the event loop into slices with rests between them, in which requests are served. */
export class Pace {
  readonly #options: PaceOptions;
  #beganMs: number;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#beganMs = options.elapsedMs();
  }

  /** The rhythm, for a part of the work that another thread does. */
  get rhythm(): Rhythm {
    const { sliceMs, restRatio } = this.#options;
    return { sliceMs, restRatio };
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal;
  }

  /**
   * Resolves after a rest where the slice is used up, and at once otherwise; call it between small pieces of work. Time in
   * which the work waited counts as work, up to that of another slice. Rejects with the signal's reason once the work is to end.
   */
  async rest(): Promise<void> {
    const { sliceMs, restRatio, elapsedMs, signal } = this.#options;
    signal?.throwIfAborted();
    const usedMs = elapsedMs() - this.#beganMs;
    if (usedMs < sliceMs) return;
    await sleep(Math.ceil(Math.min(usedMs, 2 * sliceMs) * restRatio));
    signal?.throwIfAborted();
    this.#beganMs = elapsedMs();
  }
}
