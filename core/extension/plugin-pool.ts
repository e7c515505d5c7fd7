import { PluginBreach } from "./breach.ts";
import { type Claim, FairQueue } from "./fair-queue.ts";
import type { PoolOrder, PoolReply } from "./pool-order.ts";
import { PoolThread } from "./pool-thread.ts";

export interface PluginPoolOptions {
  /** Threads, all of them kept warm. */
  readonly threads: number;
  /** For a call in all, and again for its run on a thread, which is stopped then. */
  readonly deadlineMs: number;
  readonly observer: PoolObserver;
}

export interface PoolObserver {
  readonly threads: (ready: number) => void;
  readonly waiting: (calls: number) => void;
}

export type PoolCall = PoolOrder & Omit<Claim, "bytes">;

interface Job extends Claim {
  readonly order: PoolOrder;
  readonly settle: (result: PoolReply | PluginBreach) => void;
}

interface Slot {
  readonly thread: PoolThread;
  isReady: boolean;
  /** It is being stopped: what it still says is heard, and nothing more is sent. */
  isStopping: boolean;
  job: Job | undefined;
  backstop: NodeJS.Timeout | undefined;
}

/**
 * Threads for calls that are too long for the one that serves. What waits is bounded; with two threads or more, no
 * plugin and no tenant holds them all. Fuel ends a call; the clock is the wall behind it.
 */
export class PluginPool {
  readonly #options: PluginPoolOptions;
  readonly #queue = new FairQueue<Job>();
  readonly #slots = new Set<Slot>();
  #isClosed = false;

  constructor(options: PluginPoolOptions) {
    this.#options = options;
  }

  /** Starts the threads, so that no call waits for it. */
  warm(): void {
    while (!this.#isClosed && this.#slots.size < this.#options.threads) this.#startThread();
  }

  /** What the plugin answered, or how it failed. Rejects with PluginBreach where it was not run to its end. */
  call({ plugin, tenant, ...order }: PoolCall): Promise<PoolReply> {
    this.warm();
    return new Promise((resolve, reject) => {
      const settle = (result: PoolReply | PluginBreach): void => {
        clearTimeout(timer);
        if (result instanceof PluginBreach) reject(result);
        else resolve(result);
      };
      const job: Job = { plugin, tenant, bytes: order.input.length, order, settle };
      const timer = setTimeout(() => this.#giveUp(job), this.#options.deadlineMs);
      if (this.#isClosed) settle(new PluginBreach("thread_lost", "the gateway is stopping"));
      else if (!this.#queue.push(job)) settle(overloaded("more calls of plugins wait than may"));
      else this.#runNext();
    });
  }

  /** Stops every thread; calls under way and calls that wait fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const stopped = [...this.#slots].map(({ thread }) => thread.stop());
    for (let job = this.#queue.take(() => true); job !== undefined; job = this.#queue.take(() => true)) {
      job.settle(new PluginBreach("thread_lost", "the gateway is stopping"));
    }
    await Promise.all(stopped);
  }

  #runNext(): void {
    for (const slot of this.#slots) {
      if (!slot.isReady || slot.isStopping || slot.job !== undefined) continue;
      const job = this.#queue.take((work) => this.#mayRun(work));
      if (job === undefined) break;
      slot.job = job;
      slot.backstop = setTimeout(() => stop(slot), this.#options.deadlineMs).unref();
      slot.thread.send(job.order);
    }
    this.#options.observer.waiting(this.#queue.length);
  }

  #mayRun({ plugin, tenant }: Claim): boolean {
    const most = Math.max(1, this.#options.threads - 1);
    const running = [...this.#slots].flatMap(({ job }) => job ?? []);
    return (
      running.filter((job) => job.plugin === plugin).length < most &&
      running.filter((job) => job.tenant === tenant).length < most
    );
  }

  #giveUp(job: Job): void {
    const isRunning = [...this.#slots].some((slot) => slot.job === job);
    this.#queue.remove(job);
    this.#options.observer.waiting(this.#queue.length);
    const { deadlineMs } = this.#options;
    if (isRunning) job.settle(new PluginBreach("late", `expected an answer within ${deadlineMs} ms`));
    else job.settle(overloaded(`no thread was free within ${deadlineMs} ms`));
  }

  #startThread(): void {
    const thread = new PoolThread({
      ready: () => {
        slot.isReady = true;
        this.#tellThreads();
        this.#runNext();
      },
      replied: (reply) => {
        this.#end(slot, reply);
        this.#runNext();
      },
      gone: () => {
        this.#slots.delete(slot);
        this.#tellThreads();
        this.#end(slot, new PluginBreach("thread_lost", "the thread that ran the plugin ended"));
        // One that never came up is tried again with the next call, not in a circle.
        if (slot.isReady) this.warm();
      },
    });
    const slot: Slot = { thread, isReady: false, isStopping: false, job: undefined, backstop: undefined };
    this.#slots.add(slot);
  }

  #end(slot: Slot, result: PoolReply | PluginBreach): void {
    clearTimeout(slot.backstop);
    slot.job?.settle(result);
    slot.job = undefined;
  }

  #tellThreads(): void {
    this.#options.observer.threads([...this.#slots].filter(({ isReady }) => isReady).length);
  }
}

function stop(slot: Slot): void {
  slot.isStopping = true;
  void slot.thread.stop();
}

function overloaded(detail: string): PluginBreach {
  return new PluginBreach("overloaded", detail);
}
