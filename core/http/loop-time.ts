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
  readonly #load: Pick<LoopLoad, "measure">;
  #holder: Holder | null = null;
  #since = 0;
  #hasEnd = false;

  /**
   * `elapsedMs`: monotonic, with fractions of a millisecond. Only the share of that time is charged in which the thread has
   * a processor by `load`.
   */
  constructor(onUsed: (holder: Holder, ms: number) => void, elapsedMs: () => number, load: Pick<LoopLoad, "measure">) {
    this.#onUsed = onUsed;
    this.#elapsedMs = elapsedMs;
    this.#load = load;
  }

  /** Charges what runs from now on to `holder`. */
  resume(holder: Holder): void {
    const now = this.#elapsedMs();
    if (this.#holder !== null) this.#onUsed(this.#holder, (now - this.#since) * this.#load.measure().runningShare);
    this.#holder = holder;
    this.#since = now;
    if (this.#hasEnd) return;
    this.#hasEnd = true;
    atTurnEnd(this.#end);
  }

  readonly #end = (): void => {
    this.#hasEnd = false;
    const ms = this.#elapsedMs() - this.#since;
    if (this.#holder !== null) this.#onUsed(this.#holder, ms * this.#load.measure().runningShare);
    this.#holder = null;
  };
}

/** Calls `then` once everything that follows from the current callback without waiting is done, its promises included. */
export function atTurnEnd(then: () => void): void {
  // Promises are settled before the next tick only where the tick is asked for while they are being settled.
  queueMicrotask(() => process.nextTick(then));
}

const sampleMs = 250;

/** The main thread over some time. */
interface LoadSample {
  /** The share of the time in which the event loop had work, in percent. */
  readonly percent: number;
  /**
   * The share of that work in which the thread had a processor, 0 to 1, as an upper bound: other threads of the process
   * count too. Where other processes take the processor, a clock shows more than the thread used.
   */
  readonly runningShare: number;
}

/** The load of the event loop and of its processor, over the last quarter of a second or longer. */
export class LoopLoad {
  readonly #elapsedMs: () => number;
  #start: EventLoopUtilization = performance.eventLoopUtilization();
  #startMs: number;
  #startCpu: NodeJS.CpuUsage = process.cpuUsage();
  #sample: LoadSample = { percent: 0, runningShare: 1 };

  /** `elapsedMs`: monotonic. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
    this.#startMs = elapsedMs();
  }

  /** Needs no timer: a sample begins when the last one ended, and ends when somebody asks. */
  measure(): LoadSample {
    const now = this.#elapsedMs();
    if (now - this.#startMs < sampleMs) return this.#sample;
    const end = performance.eventLoopUtilization();
    const { active, utilization } = performance.eventLoopUtilization(end, this.#start);
    const { user, system } = process.cpuUsage(this.#startCpu);
    const runningShare = active > 0 ? Math.min(1, (user + system) / 1_000 / active) : 1;
    this.#sample = { percent: utilization * 100, runningShare };
    this.#start = end;
    this.#startMs = now;
    this.#startCpu = process.cpuUsage();
    return this.#sample;
  }
}
