import { Worker } from "node:worker_threads";
import type { PluginInput } from "./abi.ts";
import { type BreachReason, PluginBreach } from "./breach.ts";
import type { CompiledModule } from "./plugin-machine.ts";

/** The order to a pool thread to run one call. */
export interface PoolOrder {
  readonly compiled: CompiledModule;
  /** The id of the compiled module, for reusing its machine. */
  readonly machine: number;
  readonly fuel: number;
  readonly input: PluginInput;
}

/** The thread's reply to an order. */
export type PoolReply = {
  readonly fuelUsed: number;
  /** The time for which the call had the thread. */
  readonly tookMs: number;
} & ({ readonly answer: Uint8Array } | { readonly reason: BreachReason; readonly detail: string });

interface PluginPoolOptions {
  /** The number of threads, all started in advance. */
  readonly threads: number;
  /** The deadline of a call's run on a thread, which is then terminated. */
  readonly deadlineMs: number;
  /** Time for which a call may wait for a thread; eight deadlines by default. */
  readonly maxWaitMs?: number;
  readonly observer: PoolObserver;
}

interface PoolObserver {
  /** Called with the time for which a call had a thread. */
  readonly ran: (caller: PoolCaller, ms: number) => void;
  readonly threads: (ready: number) => void;
  readonly waiting: (calls: number) => void;
}

type PoolCall = PoolOrder & Omit<Claim, "bytes">;

/** The tenant and the key that a call is charged to. */
type PoolCaller = Pick<Claim, "tenant" | "key">;

interface Job extends Claim {
  readonly order: PoolOrder;
  /** Ends the wait for a thread, then the run on one. */
  timer: NodeJS.Timeout | undefined;
  readonly settle: (result: PoolReply | PluginBreach) => void;
}

const deadlinesToWait = 8;
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 } as const;

interface Slot {
  readonly worker: Worker;
  isReady: boolean;
  /** Set while the thread is being stopped: replies still count, but no order is sent. */
  isStopping: boolean;
  job: Job | undefined;
}

/**
 * Threads for calls that are too long for the main thread. The queue is bounded; with two threads or more, no plugin
 * and no tenant occupies all of them. Fuel normally ends a call; the deadline is the backstop, and begins with its run:
 * waiting for others is no fault of a call.
 */
export class PluginPool {
  /** Time for which a call may wait for a thread. */
  readonly maxWaitMs: number;
  readonly #options: PluginPoolOptions;
  readonly #queue = new FairQueue<Job>();
  readonly #slots = new Set<Slot>();
  #isClosed = false;

  constructor(options: PluginPoolOptions) {
    this.#options = options;
    this.maxWaitMs = options.maxWaitMs ?? options.deadlineMs * deadlinesToWait;
  }

  /** True while calls wait for a thread. */
  get isBusy(): boolean {
    return this.#queue.length > 0;
  }

  /** Starts the threads in advance. */
  warm(): void {
    while (!this.#isClosed && this.#slots.size < this.#options.threads) this.#startThread();
  }

  /**
   * Runs a call and returns the plugin's output or its failure. Rejects with PluginBreach where the call did not run to
   * its end.
   */
  call({ plugin, tenant, key, ...order }: PoolCall): Promise<PoolReply> {
    this.warm();
    return new Promise((resolve, reject) => {
      const settle = (result: PoolReply | PluginBreach): void => {
        clearTimeout(job.timer);
        if (result instanceof PluginBreach) reject(result);
        else resolve(result);
      };
      const job: Job = { plugin, tenant, key, bytes: order.input.action.length, order, settle, timer: undefined };
      if (this.#isClosed) return settle(new PluginBreach("thread_lost", "the gateway is stopping"));
      const limit = this.#queue.push(job);
      if (limit !== undefined) return settle(overloaded(limit));
      job.timer = startTimer(() => this.#giveUp(job), this.maxWaitMs);
      this.#runNext();
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
      clearTimeout(job.timer);
      job.timer = startTimer(() => this.#stop(slot, job), this.#options.deadlineMs);
      slot.worker.postMessage(job.order);
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

  /** Ends the wait of a call that has no thread yet. */
  #giveUp(job: Job): void {
    if (!this.#queue.remove(job)) return;
    this.#options.observer.waiting(this.#queue.length);
    job.settle(overloaded(`expected a thread of plugins to be free within ${this.maxWaitMs} ms`));
  }

  /** Ends a run, with the thread. */
  #stop(slot: Slot, job: Job): void {
    if (slot.job !== job) return;
    const { deadlineMs, observer } = this.#options;
    observer.ran(job, deadlineMs);
    job.settle(new PluginBreach("timeout", `expected an answer within ${deadlineMs} ms`));
    slot.isStopping = true;
    void slot.worker.terminate();
  }

  /** Starts a thread that runs one call at a time and does not keep the process alive. */
  #startThread(): void {
    const worker = new Worker(new URL("./pool-worker.js", import.meta.url), { env: {}, resourceLimits });
    const slot: Slot = { worker, isReady: false, isStopping: false, job: undefined };
    this.#slots.add(slot);
    worker.unref();
    worker.once("online", () => {
      slot.isReady = true;
      this.#reportThreads();
      this.#runNext();
    });
    worker.on("message", (reply: PoolReply) => {
      if (slot.job !== undefined && !slot.isStopping) this.#options.observer.ran(slot.job, reply.tookMs);
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
    slot.job?.settle(result);
    slot.job = undefined;
  }

  #reportThreads(): void {
    this.#options.observer.threads([...this.#slots].filter(({ isReady }) => isReady).length);
  }
}

/** Calls back later, but not before what has come meanwhile is heard: a reply is not late because the main thread is. */
function startTimer(end: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(() => setImmediate(end), ms);
}

function overloaded(limit: string): PluginBreach {
  return new PluginBreach("overloaded", `${limit}; try again in 1 s`);
}

/** The owner of a queued call, and the bytes it holds. */
export interface Claim {
  readonly plugin: string;
  readonly tenant: string;
  /** The id of the principal. */
  readonly key: string;
  readonly bytes: number;
}

/** The lanes of a queued call: turns go to a tenant first, then to a key of it, then to a plugin that this key calls. */
type Lanes = Readonly<Record<LaneName, string>>;
type LaneName = (typeof laneNames)[number];
const laneNames = ["tenant", "key", "plugin"] as const;

const maxQueued = { claims: 256, bytes: 67_108_864 } as const;
const maxLanes = 1_024;

/** The shares of the queue: the claims that count together with one, the part that they may have, and whose they are. */
const queueShares: readonly {
  readonly counts: (other: Claim, claim: Claim) => boolean;
  readonly part: number;
  readonly owner: string;
}[] = [
  { counts: () => true, part: 1, owner: "" },
  { counts: (other, { plugin }) => other.plugin === plugin, part: 1 / 2, owner: " for one plugin" },
  { counts: (other, { tenant }) => other.tenant === tenant, part: 1 / 2, owner: " of one tenant" },
  {
    counts: (other, { plugin, tenant }) => other.plugin === plugin && other.tenant === tenant,
    part: 1 / 4,
    owner: " of one tenant for one plugin",
  },
  { counts: (other, { key }) => other.key === key, part: 1 / 4, owner: " of one key" },
];

/**
 * The queue of calls waiting for a thread. Bounded in total, per plugin, per tenant, per tenant of a plugin and per key,
 * so that none starves the others. The next call is of the least recently served tenant, then of its least recently
 * served key, then at the least recently served plugin of that; then the oldest. So however many plugins a caller's calls
 * are slow at, others wait for one of them.
 */
export class FairQueue<Work extends Claim> {
  readonly #waiting = new Map<Work, Lanes>();
  /** The turn in which each lane was last served. */
  readonly #served = new Map<string, number>();
  #turn = 0;

  get length(): number {
    return this.#waiting.size;
  }

  /** Queues a call; returns the share of the queue that it exceeds, if there is one. */
  push(work: Work): string | undefined {
    const limit = this.#exceededBy(work);
    if (limit !== undefined) return limit;
    const { plugin, tenant, key } = work;
    const lanes = { tenant, key: JSON.stringify([tenant, key]), plugin: JSON.stringify([tenant, key, plugin]) };
    this.#waiting.set(work, lanes);
    // A new lane comes after the waiting ones: otherwise leaving and returning would be a way to the front.
    for (const lane of Object.values(lanes)) if (!this.#served.has(lane)) this.#serve(lane);
    return undefined;
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

  /** Returns false where the call is not in the queue. */
  remove(work: Work): boolean {
    return this.#waiting.delete(work);
  }

  #exceededBy(work: Work): string | undefined {
    for (const { counts, part, owner } of queueShares) {
      let [claims, bytes] = [1, work.bytes];
      for (const other of this.#waiting.keys()) {
        if (!counts(other, work)) continue;
        claims++;
        bytes += other.bytes;
      }
      const max = { claims: maxQueued.claims * part, bytes: maxQueued.bytes * part };
      if (claims > max.claims) return `expected at most ${max.claims} calls${owner} to wait for a thread of plugins`;
      if (bytes > max.bytes) return `expected at most ${max.bytes} bytes${owner} to wait for a thread of plugins`;
    }
    return undefined;
  }

  #isBefore(lanes: Lanes, others: Lanes): boolean {
    const name = laneNames.find((lane) => lanes[lane] !== others[lane]) ?? "plugin";
    return (this.#served.get(lanes[name]) ?? 0) < (this.#served.get(others[name]) ?? 0);
  }

  #serve(lane: string): void {
    this.#served.delete(lane);
    this.#served.set(lane, ++this.#turn);
    const [oldest] = this.#served.keys();
    if (this.#served.size > maxLanes && oldest !== undefined) this.#served.delete(oldest);
  }
}
