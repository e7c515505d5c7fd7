import { Worker } from "node:worker_threads";
import { PluginBreach } from "./breach.ts";
import type { PoolOrder, PoolReply } from "./pool-order.ts";

interface PluginPoolOptions {
  /** Threads, all of them kept warm. */
  readonly threads: number;
  /** For a call in all, and again for its run on a thread, which is stopped then. */
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
    if (isRunning) job.settle(new PluginBreach("timeout", `expected an answer within ${deadlineMs} ms`));
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

/** Whose work it is, and what it holds while it waits. */
export interface Claim {
  readonly plugin: string;
  readonly tenant: string;
  readonly bytes: number;
}

/** Whom a turn goes to: first a plugin, then a tenant there. */
interface Lanes {
  readonly plugin: string;
  readonly tenant: string;
}

const most = { claims: 256, bytes: 67_108_864 } as const;
const maxLanes = 1_024;

/**
 * Work that waits for a thread. Bounded in all, for a plugin, for a tenant, and for a tenant at a plugin, so that none
 * fills it for the others. The next is of the plugin that was served longest ago; among its work, of the tenant that
 * was; then the oldest.
 */
export class FairQueue<Work extends Claim> {
  readonly #waiting = new Map<Work, Lanes>();
  /** When each lane was last served, as a count of turns. */
  readonly #served = new Map<string, number>();
  #turn = 0;

  get length(): number {
    return this.#waiting.size;
  }

  /** False, and it does not wait, where that would be more than its share. */
  push(work: Work): boolean {
    if (!this.#fits(work)) return false;
    const { plugin, tenant } = work;
    const lanes = { plugin, tenant: JSON.stringify([plugin, tenant]) };
    this.#waiting.set(work, lanes);
    // Who is new comes after who waits already: else coming and going would be a way to the front.
    for (const lane of Object.values(lanes)) if (!this.#served.has(lane)) this.#serve(lane);
    return true;
  }

  /** Takes out whose turn it is among the work that may be done now. */
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
      held.claims < most.claims * share && held.bytes + bytes <= most.bytes * share;
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

const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 } as const;

interface PoolThreadListener {
  /** It can be sent orders. */
  readonly ready: () => void;
  readonly replied: (reply: PoolReply) => void;
  /** It ended, by itself or stopped; nothing more comes from it. */
  readonly gone: () => void;
}

/** A thread that runs one call at a time. Nothing of it keeps the process alive. */
class PoolThread {
  readonly #worker: Worker;

  constructor(listener: PoolThreadListener) {
    this.#worker = new Worker(new URL("./pool-worker.js", import.meta.url), { env: {}, resourceLimits });
    this.#worker.unref();
    this.#worker.once("online", listener.ready);
    this.#worker.on("message", listener.replied);
    // `exit` follows, with or without an error before it.
    this.#worker.once("error", () => undefined);
    this.#worker.once("exit", listener.gone);
  }

  send(order: PoolOrder): void {
    this.#worker.postMessage(order, [order.input.buffer as ArrayBuffer]);
  }

  /** Stops it in the middle of whatever it runs. */
  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
