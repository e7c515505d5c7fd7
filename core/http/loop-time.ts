import { type EventLoopUtilization, performance } from "node:perf_hooks";

/**
 * Measures the time of the main thread that each holder uses.
 *
 * A holder is charged from `resume` until another holder resumes, or until everything that follows from the current
 * callback without waiting is done, its promises included. What runs on other threads, what the network layer does before
 * a request is known, and work that several holders share, as a commit does, are charged to nobody.
 */
export class LoopTime<Holder> {
  readonly #onUsed: (holder: Holder, ms: number) => void;
  readonly #elapsedMs: () => number;
  #holder: Holder | null = null;
  #since = 0;
  #hasEnd = false;

  /** `elapsedMs`: monotonic, with fractions of a millisecond. */
  constructor(onUsed: (holder: Holder, ms: number) => void, elapsedMs: () => number) {
    this.#onUsed = onUsed;
    this.#elapsedMs = elapsedMs;
  }

  /** Charges what runs from now on to `holder`. */
  resume(holder: Holder): void {
    const now = this.#elapsedMs();
    this.#charge(now);
    this.#holder = holder;
    this.#since = now;
    if (this.#hasEnd) return;
    this.#hasEnd = true;
    // Promises are settled before the next tick only where the tick is asked for while they are being settled.
    queueMicrotask(() => process.nextTick(this.#end));
  }

  readonly #end = (): void => {
    this.#hasEnd = false;
    this.#charge(this.#elapsedMs());
    this.#holder = null;
  };

  #charge(now: number): void {
    if (this.#holder !== null) this.#onUsed(this.#holder, now - this.#since);
  }
}

const sampleMs = 250;

/** The share of the time in which the event loop had work, over the last quarter of a second or longer. */
export class LoopLoad {
  readonly #elapsedMs: () => number;
  #start: EventLoopUtilization = performance.eventLoopUtilization();
  #startMs: number;
  #percent = 0;

  /** `elapsedMs`: monotonic. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
    this.#startMs = elapsedMs();
  }

  /** 0 to 100. Needs no timer: a sample begins when the last one was read, and is read when somebody asks. */
  percent(): number {
    const now = this.#elapsedMs();
    if (now - this.#startMs < sampleMs) return this.#percent;
    const end = performance.eventLoopUtilization();
    this.#percent = performance.eventLoopUtilization(end, this.#start).utilization * 100;
    this.#start = end;
    this.#startMs = now;
    return this.#percent;
  }
}
