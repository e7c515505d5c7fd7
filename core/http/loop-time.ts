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
  readonly #runningShare: () => number;
  #holder: Holder | null = null;
  #since = 0;
  #hasEnd = false;

  /**
   * `elapsedMs`: monotonic, with fractions of a millisecond. `runningShare`: the share of that time in which the thread has
   * a processor, 0 to 1; only that is charged.
   */
  constructor(onUsed: (holder: Holder, ms: number) => void, elapsedMs: () => number, runningShare: () => number) {
    this.#onUsed = onUsed;
    this.#elapsedMs = elapsedMs;
    this.#runningShare = runningShare;
  }

  /** Charges what runs from now on to `holder`. */
  resume(holder: Holder): void {
    const now = this.#elapsedMs();
    if (this.#holder !== null) this.#onUsed(this.#holder, (now - this.#since) * this.#runningShare());
    this.#holder = holder;
    this.#since = now;
    if (this.#hasEnd) return;
    this.#hasEnd = true;
    // Promises are settled before the next tick only where the tick is asked for while they are being settled.
    queueMicrotask(() => process.nextTick(this.#end));
  }

  readonly #end = (): void => {
    this.#hasEnd = false;
    const ms = this.#elapsedMs() - this.#since;
    if (this.#holder !== null) this.#onUsed(this.#holder, ms * this.#runningShare());
    this.#holder = null;
  };
}

const sampleMs = 250;

/** The load of the event loop and of its processor, over the last quarter of a second or longer. */
export class LoopLoad {
  readonly #elapsedMs: () => number;
  #start: EventLoopUtilization = performance.eventLoopUtilization();
  #startMs: number;
  #startCpu: NodeJS.CpuUsage = process.cpuUsage();
  #percent = 0;
  #runningShare = 1;

  /** `elapsedMs`: monotonic. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
    this.#startMs = elapsedMs();
  }

  /** Returns the share of the time in which the event loop had work, in percent. */
  percent(): number {
    this.#sample();
    return this.#percent;
  }

  /**
   * Returns the share of that work in which the thread had a processor, 0 to 1, as an upper bound: other threads of the
   * process count too. Where other processes take the processor, a clock shows more than the thread used.
   */
  runningShare(): number {
    this.#sample();
    return this.#runningShare;
  }

  /** Needs no timer: a sample begins when the last one ended, and ends when somebody asks. */
  #sample(): void {
    const now = this.#elapsedMs();
    if (now - this.#startMs < sampleMs) return;
    const end = performance.eventLoopUtilization();
    const { active, utilization } = performance.eventLoopUtilization(end, this.#start);
    const { user, system } = process.cpuUsage(this.#startCpu);
    this.#percent = utilization * 100;
    this.#runningShare = active > 0 ? Math.min(1, (user + system) / 1_000 / active) : 1;
    this.#start = end;
    this.#startMs = now;
    this.#startCpu = process.cpuUsage();
  }
}
