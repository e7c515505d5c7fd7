import type { Clock, Random } from "../action/id.ts";
import { type RetryDelays, retryDelay } from "../action/retry.ts";
import type { Journal, NotifyStore, Operation } from "./journal.ts";
import {
  type DeathReason,
  outboxKey,
  outboxRange,
  type Parcel,
  readParcel,
  sequenceOf,
  writeParcel,
} from "./parcel.ts";
import type { Answer, Receiver } from "./receiver.ts";

interface CourierOptions {
  readonly outbox: Outbox;
  readonly receiver: Receiver;
  readonly maxAttempts: number;
  readonly delays: RetryDelays;
  readonly clock: Clock;
  readonly random: Random;
  readonly onDelivered: () => void;
  /** Hears of each attempt that failed and will be repeated, and why no answer came. */
  readonly onFailed: (parcel: Parcel, fault: string | null) => void;
  /** Takes a parcel out of the outbox for good. */
  readonly giveUp: (seq: number, parcel: Parcel, reason: DeathReason) => void;
}

/** Attempts that may run beside the one that is a parcel's first. */
const maxRetries = 4;
/** So that a receiver's pool has a connection for each. */
export const maxConnections: number = 1 + maxRetries;

/**
 * Takes the parcels of one outbox to one receiver. First attempts are made one after another, in order: while all goes
 * well, that is the order in which they arrive. What failed comes again later, by timers: no clock that is set back or
 * forth holds it up.
 */
export class Courier {
  readonly #options: CourierOptions;
  /** Turns that wait for their first attempt, and those whose time to be tried again has come. */
  readonly #fresh = new Set<number>();
  readonly #due = new Set<number>();
  readonly #timers = new Map<number, NodeJS.Timeout>();
  readonly #running = new Set<number>();
  #leading = false;
  #waking: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: CourierOptions) {
    this.#options = options;
    for (const [seq, { attempts, notBefore }] of options.outbox.parcels) {
      if (attempts === 0) this.#fresh.add(seq);
      else this.#wait(seq, Math.min(Math.max(0, notBefore - options.clock()), options.delays.maxMs));
    }
    this.#wake();
  }

  /** Turns of the parcels that are under way now. */
  get running(): ReadonlySet<number> {
    return this.#running;
  }

  /** Takes on a parcel that was added to the outbox. */
  take(seq: number): void {
    this.#fresh.add(seq);
    this.#wake();
  }

  /** Forgets a parcel that is not under way. */
  drop(seq: number): void {
    this.#fresh.delete(seq);
    this.#due.delete(seq);
    clearTimeout(this.#timers.get(seq));
    this.#timers.delete(seq);
  }

  /** Gives up what is under way; it stays in the outbox as it was. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await this.#options.receiver.close();
  }

  /** In a turn of its own: who tells of something waits for no signature. */
  #wake(): void {
    this.#waking ??= setImmediate(() => {
      this.#waking = undefined;
      this.#proceed();
    });
  }

  #proceed(): void {
    if (this.#closed) return;
    if (!this.#leading) this.#lead();
    const retries = (): number => this.#running.size - (this.#leading ? 1 : 0);
    for (const seq of this.#due) {
      if (retries() >= maxRetries) return;
      this.#due.delete(seq);
      void this.#attempt(seq).then(() => this.#proceed());
    }
  }

  #lead(): void {
    const [seq] = this.#fresh;
    if (seq === undefined) return;
    this.#fresh.delete(seq);
    this.#leading = true;
    void this.#attempt(seq).then(() => {
      this.#leading = false;
      this.#proceed();
    });
  }

  async #attempt(seq: number): Promise<void> {
    const { outbox, receiver } = this.#options;
    const parcel = outbox.parcels.get(seq);
    if (parcel === undefined) throw new TypeError("webhook: expected a parcel in the outbox");
    this.#running.add(seq);
    const answer = await receiver.post(parcel);
    this.#running.delete(seq);
    // An attempt that a stop cut off is none.
    if (!this.#closed) this.#settle(seq, parcel, answer);
  }

  #settle(seq: number, parcel: Parcel, answer: Answer): void {
    const { outbox, onDelivered, giveUp, maxAttempts } = this.#options;
    if (answer.verdict === "delivered") {
      outbox.remove(seq);
      onDelivered();
      return;
    }
    const failed = { ...parcel, attempts: parcel.attempts + 1, status: answer.status };
    if (answer.verdict === "refused") giveUp(seq, failed, "refused");
    else if (failed.attempts >= maxAttempts) giveUp(seq, failed, "exhausted");
    else this.#repeat(seq, failed, answer);
  }

  #repeat(seq: number, parcel: Parcel, { fault, retryAfterMs }: Answer): void {
    const { outbox, onFailed, clock, delays, random } = this.#options;
    const delayMs = retryDelay(parcel.attempts, retryAfterMs, delays, random);
    // For the next process alone: this one waits by a timer.
    outbox.replace(seq, { ...parcel, notBefore: clock() + delayMs });
    this.#wait(seq, delayMs);
    onFailed(parcel, fault);
  }

  #wait(seq: number, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(seq);
      this.#due.add(seq);
      this.#proceed();
    }, delayMs);
    this.#timers.set(seq, timer.unref());
  }
}

const maxParcels = 10_000;
const maxBytes = 16_777_216;

/** What one webhook has not been told yet, by turn: in memory, and in the store as soon as the journal has written it. */
export class Outbox {
  readonly #tenant: string;
  readonly #webhook: string;
  readonly #journal: Journal;
  readonly #parcels: Map<number, Parcel>;
  #nextSeq: number;
  #bytes = 0;

  private constructor(tenant: string, webhook: string, journal: Journal, parcels: Map<number, Parcel>) {
    this.#tenant = tenant;
    this.#webhook = webhook;
    this.#journal = journal;
    this.#parcels = parcels;
    this.#nextSeq = ([...parcels.keys()].at(-1) ?? -1) + 1;
    for (const { body } of parcels.values()) this.#bytes += body.length;
  }

  /** With what an earlier process has left in it. */
  static async open(store: NotifyStore, journal: Journal, tenant: string, webhook: string): Promise<Outbox> {
    const entries = await store.iterator(outboxRange(tenant, webhook)).all();
    const parcels = new Map(entries.map(([key, text]) => [sequenceOf(key), readParcel(text)]));
    return new Outbox(tenant, webhook, journal, parcels);
  }

  /** By their turns. */
  get parcels(): ReadonlyMap<number, Parcel> {
    return this.#parcels;
  }

  /** Adds a parcel behind all others, and returns its turn. `also`: what must happen in the store together with it. */
  add(parcel: Parcel, also: readonly Operation[] = []): number {
    const seq = this.#nextSeq++;
    this.#bytes += parcel.body.length;
    this.#put(seq, parcel, also);
    return seq;
  }

  /** Notes an attempt. */
  replace(seq: number, parcel: Parcel): void {
    this.#put(seq, parcel, []);
  }

  remove(seq: number, also: readonly Operation[] = []): void {
    this.#bytes -= this.#parcels.get(seq)?.body.length ?? 0;
    this.#parcels.delete(seq);
    this.#journal.write([{ type: "del", key: this.#key(seq) }, ...also]);
  }

  /** The turn of the oldest parcel where there is one too many; one that is `spared` stays. */
  excess(spared: ReadonlySet<number>): number | undefined {
    if (this.#parcels.size <= maxParcels && this.#bytes <= maxBytes) return undefined;
    for (const seq of this.#parcels.keys()) if (!spared.has(seq)) return seq;
    return undefined;
  }

  #put(seq: number, parcel: Parcel, also: readonly Operation[]): void {
    this.#parcels.set(seq, parcel);
    this.#journal.write([{ type: "put", key: this.#key(seq), value: writeParcel(parcel) }, ...also]);
  }

  #key(seq: number): string {
    return outboxKey(this.#tenant, this.#webhook, seq);
  }
}
