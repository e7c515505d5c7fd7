import { Worker } from "node:worker_threads";
import { type BreachReason, PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./plugin-machine.ts";

/** The order to a pool thread to run one call. */
export interface PoolOrder {
  readonly compiled: CompiledModule;
  /** The id of the compiled module, for reusing its machine. */
  readonly machine: number;
  readonly fuel: number;
  /** Transferred: the sender can no longer read it. */
  readonly input: Uint8Array;
}

/** The thread's reply to an order. */
export type PoolReply = {
  readonly fuelUsed: number;
} & ({ readonly answer: Uint8Array } | { readonly reason: BreachReason; readonly detail: string });

interface PluginPoolOptions {
  /** The number of threads, all started in advance. */
  readonly threads: number;
  /** The deadline of a call, and of its run on a thread, which is then terminated. */
  readonly deadlineMs: number;
  readonly observer: PoolObserver;
}

interface PoolObserver {
  readonly threads: (ready: number) => void;
  readonly waiting: (calls: number) => void;
}

type PoolCall = PoolOrder & Omit<Claim, "bytes">;

interface Job extends Claim {
  readonly order: PoolOrder;
  readonly settle: (result: PoolReply | PluginBreach) => void;
}

const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 } as const;

interface Slot {
  readonly worker: Worker;
  isReady: boolean;
  /** Set while the thread is being stopped: replies still count, but no order is sent. */
  isStopping: boolean;
  job: Job | undefined;
  backstop: NodeJS.Timeout | undefined;
}

/**
 * Threads for calls that are too long for the main thread. The queue is bounded; with two threads or more, no plugin
 * and no tenant occupies all of them. Fuel normally ends a call; the deadline is the backstop.
 */
export class PluginPool {
  readonly #options: PluginPoolOptions;
  readonly #queue = new FairQueue<Job>();
  readonly #slots = new Set<Slot>();
  #isClosed = false;

  constructor(options: PluginPoolOptions) {
    this.#options = options;
  }

  /** Starts the threads in advance. */
  warm(): void {
    while (!this.#isClosed && this.#slots.size < this.#options.threads) this.#startThread();
  }

  /**
   * Runs a call and returns the plugin's output or its failure. Rejects with PluginBreach where the call did not run to
   * its end.
   */
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

  /** Stops every thread; running and queued calls fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const stopped = [...this.#slots].map(({ worker }) => worker.terminate());
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
      slot.worker.postMessage(job.order, [job.order.input.buffer as ArrayBuffer]);
    }
    this.#options.observer.waiting(this.#queue.length);
  }

  #mayRun({ plugin, tenant }: Claim): boolean {
    const limit = Math.max(1, this.#options.threads - 1);
    const running = [...this.#slots].flatMap(({ job }) => job ?? []);
    return (
      running.filter((job) => job.plugin === plugin).length < limit &&
      running.filter((job) => job.tenant === tenant).length < limit
    );
  }

  #giveUp(job: Job): void {
    const isRunning = [...this.#slots].some((slot) => slot.job === job);
    this.#queue.remove(job);
    this.#options.observer.waiting(this.#queue.length);
    const { deadlineMs } = this.#options;
    if (isRunning) job.settle(new PluginBreach("timeout", `expected an answer within ${deadlineMs} ms`));
    else job.settle(overloaded(`no thread was free within ${deadlineMs} ms`));
  }

  /** Starts a thread that runs one call at a time and does not keep the process alive. */
  #startThread(): void {
    const worker = new Worker(new URL("./pool-worker.js", import.meta.url), { env: {}, resourceLimits });
    const slot: Slot = { worker, isReady: false, isStopping: false, job: undefined, backstop: undefined };
    this.#slots.add(slot);
    worker.unref();
    worker.once("online", () => {
      slot.isReady = true;
      this.#reportThreads();
      this.#runNext();
    });
    worker.on("message", (reply: PoolReply) => {
      this.#end(slot, reply);
      this.#runNext();
    });
    // `exit` follows every `error`.
    worker.once("error", () => undefined);
    worker.once("exit", () => {
      this.#slots.delete(slot);
      this.#reportThreads();
      this.#end(slot, new PluginBreach("thread_lost", "the thread that ran the plugin ended"));
      // A thread that never started is retried with the next call, not at once.
      if (slot.isReady) this.warm();
    });
  }

  #end(slot: Slot, result: PoolReply | PluginBreach): void {
    clearTimeout(slot.backstop);
    slot.job?.settle(result);
    slot.job = undefined;
  }

  #reportThreads(): void {
    this.#options.observer.threads([...this.#slots].filter(({ isReady }) => isReady).length);
  }
}

function stop(slot: Slot): void {
  slot.isStopping = true;
  void slot.worker.terminate();
}

function overloaded(detail: string): PluginBreach {
  return new PluginBreach("overloaded", detail);
}

/** The owner of a queued call, and the bytes it holds. */
export interface Claim {
  readonly plugin: string;
  readonly tenant: string;
  readonly bytes: number;
}

/** The lanes of a queued call: turns go to a plugin first, then to a tenant of it. */
interface Lanes {
  readonly plugin: string;
  readonly tenant: string;
}

const maxQueued = { claims: 256, bytes: 67_108_864 } as const;
const maxLanes = 1_024;

/**
 * The queue of calls waiting for a thread. Bounded in total, per plugin, per tenant and per tenant of a plugin, so that
 * none starves the others. The next call is of the least recently served plugin, then of its least recently served
 * tenant; then the oldest.
 */
export class FairQueue<Work extends Claim> {
  readonly #waiting = new Map<Work, Lanes>();
  /** The turn in which each lane was last served. */
  readonly #served = new Map<string, number>();
  #turn = 0;

  get length(): number {
    return this.#waiting.size;
  }

  /** Queues a call; returns false where it exceeds a share of the queue. */
  push(work: Work): boolean {
    if (!this.#fits(work)) return false;
    const { plugin, tenant } = work;
    const lanes = { plugin, tenant: JSON.stringify([plugin, tenant]) };
    this.#waiting.set(work, lanes);
    // A new lane comes after the waiting ones: otherwise leaving and returning would be a way to the front.
    for (const lane of Object.values(lanes)) if (!this.#served.has(lane)) this.#serve(lane);
    return true;
  }

  /** Removes and returns the next call among those that may run now. */
  take(isAllowed: (work: Work) => boolean): Work | undefined {
    let next: { readonly work: Work; readonly lanes: Lanes } | undefined;
    for (const [work, lanes] of this.#waiting) {
      if (isAllowed(work) && (next === undefined || this.#isBefore(lanes, next.lanes))) next = { work, lanes };
    }
    if (next === undefined) return undefined;
    this.#waiting.delete(next.work);
    for (const lane of Object.values(next.lanes)) this.#serve(lane);
    return next.work;
  }

  remove(work: Work): void {
    this.#waiting.delete(work);
  }

  #fits({ plugin, tenant, bytes }: Work): boolean {
    const held = { all: none, plugin: none, tenant: none, both: none };
    for (const other of this.#waiting.keys()) {
      held.all = add(held.all, other.bytes);
      if (other.plugin === plugin) held.plugin = add(held.plugin, other.bytes);
      if (other.tenant === tenant) held.tenant = add(held.tenant, other.bytes);
      if (other.plugin === plugin && other.tenant === tenant) held.both = add(held.both, other.bytes);
    }
    const isWithin = (held: Held, share: number): boolean =>
      held.claims < maxQueued.claims * share && held.bytes + bytes <= maxQueued.bytes * share;
    return (
      isWithin(held.all, 1) &&
      isWithin(held.plugin, 1 / 2) &&
      isWithin(held.tenant, 1 / 2) &&
      isWithin(held.both, 1 / 4)
    );
  }

  #isBefore(lanes: Lanes, others: Lanes): boolean {
    const name = lanes.plugin === others.plugin ? "tenant" : "plugin";
    return (this.#served.get(lanes[name]) ?? 0) < (this.#served.get(others[name]) ?? 0);
  }

  #serve(lane: string): void {
    this.#served.delete(lane);
    this.#served.set(lane, ++this.#turn);
    const [oldest] = this.#served.keys();
    if (this.#served.size > maxLanes && oldest !== undefined) this.#served.delete(oldest);
  }
}

interface Held {
  readonly claims: number;
  readonly bytes: number;
}

const none: Held = { claims: 0, bytes: 0 };

function add({ claims, bytes }: Held, more: number): Held {
  return { claims: claims + 1, bytes: bytes + more };
}
