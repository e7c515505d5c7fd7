import type { Clock } from "../kernel/port.ts";

export interface RepairOptions {
  readonly clock: Clock;
  readonly attempt: () => Promise<void>;
  /** Hears each attempt that failed. */
  readonly onFailure: (cause: unknown) => void;
}

const intervalMs = 1_000;

/** Attempts a repair when somebody needs it: one at a time, at most one a second. Needs no timer. */
export class Repair {
  readonly #options: RepairOptions;
  #running: Promise<void> | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(options: RepairOptions) {
    this.#options = options;
  }

  /** Starts an attempt unless one runs or ran just now. A clock set back counts as time passed. */
  request(): void {
    const now = this.#options.clock();
    if (this.#running !== null || Math.abs(now - this.#lastMs) < intervalMs) return;
    this.#lastMs = now;
    this.#running = this.#run();
  }

  /** Resolves when no attempt runs. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      await this.#options.attempt();
    } catch (cause) {
      this.#options.onFailure(cause);
    } finally {
      this.#running = null;
    }
  }
}
