import type { Clock, Random } from "../action/id.ts";
import { type RetryDelays, retryDelay } from "../action/retry.ts";
import type { DeadLetterReason } from "./dead-letter.ts";
import type { Outbox, WebhookDelivery } from "./outbox.ts";
import type { AttemptResult, Receiver } from "./receiver.ts";

interface DeliveryWorkerOptions {
  readonly outbox: Outbox;
  readonly receiver: Receiver;
  readonly maxAttempts: number;
  readonly delays: RetryDelays;
  readonly clock: Clock;
  readonly random: Random;
  readonly onDelivered: () => void;
  /** Called after each failed attempt that will be retried. `fault`: why no response arrived. */
  readonly onFailed: (delivery: WebhookDelivery, fault: string | null) => void;
  /** Removes a delivery from the outbox for good. */
  readonly onAbandoned: (seq: number, delivery: WebhookDelivery, reason: DeadLetterReason) => void;
}

/** Retries that may run beside one first attempt. */
const maxRetries = 4;
/** Connections that a receiver's pool needs. */
export const maxConnections: number = 1 + maxRetries;

/**
 * Sends the deliveries of one outbox to one receiver. First attempts run one after another, so deliveries arrive in order
 * until one fails. Retries run later, by timers: setting the clock back or forth delays none of them.
 */
export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  /** Sequence numbers that wait for their first attempt, and those that are due for a retry. */
  readonly #fresh = new Set<number>();
  readonly #due = new Set<number>();
  readonly #timers = new Map<number, NodeJS.Timeout>();
  readonly #running = new Set<number>();
  #isFirstAttemptRunning = false;
  #scheduled: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    for (const [seq, { attempts, notBefore }] of options.outbox.deliveries) {
      if (attempts === 0) this.#fresh.add(seq);
      else this.#retryAfter(seq, Math.min(Math.max(0, notBefore - options.clock()), options.delays.maxMs));
    }
    this.#schedule();
  }

  /** Sequence numbers of the deliveries in flight. */
  get running(): ReadonlySet<number> {
    return this.#running;
  }

  /** Schedules the first attempt of a delivery that was added to the outbox. */
  enqueue(seq: number): void {
    this.#fresh.add(seq);
    this.#schedule();
  }

  /** Cancels the attempts of a delivery that is not in flight. */
  drop(seq: number): void {
    this.#fresh.delete(seq);
    this.#due.delete(seq);
    clearTimeout(this.#timers.get(seq));
    this.#timers.delete(seq);
  }

  /** Aborts the attempts in flight; their deliveries stay in the outbox unchanged. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await this.#options.receiver.close();
  }

  /** Runs in a later turn: the publisher of a notice does not wait for signatures. */
  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#startAttempts();
    });
  }

  #startAttempts(): void {
    if (this.#closed) return;
    if (!this.#isFirstAttemptRunning) this.#startFirstAttempt();
    for (const seq of this.#due) {
      const retryCount = this.#running.size - (this.#isFirstAttemptRunning ? 1 : 0);
      if (retryCount >= maxRetries) return;
      this.#due.delete(seq);
      void this.#attempt(seq).then(() => this.#startAttempts());
    }
  }

  #startFirstAttempt(): void {
    const [seq] = this.#fresh;
    if (seq === undefined) return;
    this.#fresh.delete(seq);
    this.#isFirstAttemptRunning = true;
    void this.#attempt(seq).then(() => {
      this.#isFirstAttemptRunning = false;
      this.#startAttempts();
    });
  }

  async #attempt(seq: number): Promise<void> {
    const { outbox, receiver } = this.#options;
    const delivery = outbox.deliveries.get(seq);
    if (delivery === undefined) throw new TypeError("DeliveryWorker: expected a delivery in the outbox");
    this.#running.add(seq);
    const result = await receiver.post(delivery);
    this.#running.delete(seq);
    // An attempt that was aborted by `close` does not count.
    if (!this.#closed) this.#settle(seq, delivery, result);
  }

  #settle(seq: number, delivery: WebhookDelivery, result: AttemptResult): void {
    const { outbox, onDelivered, onAbandoned, maxAttempts } = this.#options;
    if (result.outcome === "delivered") {
      outbox.remove(seq);
      onDelivered();
      return;
    }
    const failed = { ...delivery, attempts: delivery.attempts + 1, status: result.status };
    if (result.outcome === "refused") onAbandoned(seq, failed, "refused");
    else if (failed.attempts >= maxAttempts) onAbandoned(seq, failed, "exhausted");
    else this.#retry(seq, failed, result);
  }

  #retry(seq: number, failed: WebhookDelivery, { fault, retryAfterMs }: AttemptResult): void {
    const { outbox, onFailed, clock, delays, random } = this.#options;
    const delayMs = retryDelay(failed.attempts, retryAfterMs, delays, random);
    // Read by the next process only: this one waits by a timer.
    outbox.replace(seq, { ...failed, notBefore: clock() + delayMs });
    this.#retryAfter(seq, delayMs);
    onFailed(failed, fault);
  }

  #retryAfter(seq: number, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(seq);
      this.#due.add(seq);
      this.#startAttempts();
    }, delayMs);
    this.#timers.set(seq, timer.unref());
  }
}
