import type { JsonObject } from "../action/json.ts";

/** The channels of live events. */
export const liveChannels = ["decisions", "approvals", "risk", "metrics"] as const;
export type LiveChannel = (typeof liveChannels)[number];

/** An event of one tenant. It contains no arguments and no outputs. */
export interface LiveEvent {
  readonly channel: LiveChannel;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly data: JsonObject;
}

/** The events that all subscribers of a tenant get at once, oldest first. The same object for each of them. */
export interface LiveRound {
  readonly events: readonly LiveEvent[];
  /** Events of each channel that came before these and were dropped. */
  readonly dropped: Readonly<Record<LiveChannel, number>>;
}

/** Called once for each round; must not throw. */
export type LiveListener = (round: LiveRound) => void;

interface LiveSubscription {
  readonly channels: ReadonlySet<LiveChannel>;
  readonly listener: LiveListener;
}

/** Events that wait for the next round. */
const maxWaiting = 256;
/** Time that a round may take of one turn of the event loop. */
const maxTurnMs = 1;
/** After a round the subscribers wait nine times as long as it took: they never get more than a tenth of the time. */
const restFactor = 9;

/**
 * The subscribers of one tenant. Events are collected and delivered in rounds, a part of the subscribers in each turn of the
 * event loop. A round without rest begins in the turn after its first event.
 */
export class LiveAudience {
  readonly #elapsedMs: () => number;
  readonly #subscriptions = new Set<LiveSubscription>();
  readonly #counts = noEvents();
  #events: LiveEvent[] = [];
  #dropped = noEvents();
  #isScheduled = false;
  #restUntilMs = 0;

  /** `elapsedMs`: monotonic. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  /** Returns the function that ends the subscription, also in the middle of a round. */
  add(subscription: LiveSubscription): () => void {
    this.#subscriptions.add(subscription);
    for (const channel of subscription.channels) this.#counts[channel]++;
    return () => {
      if (!this.#subscriptions.delete(subscription)) return;
      for (const channel of subscription.channels) this.#counts[channel]--;
    };
  }

  hasSubscriber(channel: LiveChannel): boolean {
    return this.#counts[channel] > 0;
  }

  /** Adds an event to the next round. Where 256 wait, the older half is dropped and counted. */
  publish(event: LiveEvent): void {
    if (this.#events.length >= maxWaiting) {
      for (const { channel } of this.#events.splice(0, maxWaiting / 2)) this.#dropped[channel]++;
    }
    this.#events.push(event);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const restMs = this.#restUntilMs - this.#elapsedMs();
    if (restMs > 0) setTimeout(() => this.#begin(), restMs).unref();
    else setImmediate(() => this.#begin());
  }

  #begin(): void {
    const round: LiveRound = { events: this.#events, dropped: this.#dropped };
    this.#events = [];
    this.#dropped = noEvents();
    this.#deliver(round, [...this.#subscriptions], 0, 0);
  }

  /** Delivers to the subscribers from `from` on until the turn is over; `usedMs`: the time of the turns before. */
  #deliver(round: LiveRound, subscriptions: readonly LiveSubscription[], from: number, usedMs: number): void {
    const startMs = this.#elapsedMs();
    let at = from;
    let turnMs = 0;
    while (at < subscriptions.length && turnMs < maxTurnMs) {
      const subscription = subscriptions[at++] as LiveSubscription;
      if (this.#subscriptions.has(subscription)) subscription.listener(round);
      turnMs = this.#elapsedMs() - startMs;
    }
    if (at < subscriptions.length) setImmediate(() => this.#deliver(round, subscriptions, at, usedMs + turnMs));
    else this.#rest(usedMs + turnMs);
  }

  #rest(usedMs: number): void {
    this.#restUntilMs = this.#elapsedMs() + usedMs * restFactor;
    this.#isScheduled = false;
    // Events that came in the meantime make the next round.
    const waiting = this.#events.pop();
    if (waiting !== undefined) this.publish(waiting);
  }
}

function noEvents(): Record<LiveChannel, number> {
  return { decisions: 0, approvals: 0, risk: 0, metrics: 0 };
}
