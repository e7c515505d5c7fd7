import type { Decision } from "../action/decision.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";

const maxLatest = 200;

/** Called once for each event; must not throw. */
type LiveListener = (event: LiveEvent) => void;

interface Subscription {
  readonly tenant: string;
  readonly channels: ReadonlySet<LiveChannel>;
  readonly listener: LiveListener;
}

/**
 * Publishes events to subscribers of the same tenant, and keeps each tenant's latest decisions. The number of tenants is
 * bounded by the configuration.
 */
export class LiveFeed {
  readonly #clock: Clock;
  readonly #showLabels: boolean;
  readonly #subscriptions = new Set<Subscription>();
  readonly #rates = new Map<string, DecisionRate>();
  readonly #latest = new Map<string, LiveEvent[]>();

  /** `showLabels`: false removes session labels from events. */
  constructor(clock: Clock, showLabels: boolean) {
    this.#clock = clock;
    this.#showLabels = showLabels;
  }

  /** Returns the function that ends the subscription. */
  subscribe(tenant: string, channels: ReadonlySet<LiveChannel>, listener: LiveListener): () => void {
    const subscription = { tenant, channels, listener };
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  /** Calls `make` only where there is a subscriber. */
  publish(tenant: string, channel: LiveChannel, make: () => JsonObject): void {
    let event: LiveEvent | undefined;
    for (const listener of this.#listeners(tenant, channel)) {
      event ??= this.#makeEvent(channel, make());
      listener(event);
    }
  }

  /** Publishes a decision, counts it for the channel `metrics`, and keeps it as one of the latest 200. */
  decide(tenant: string, decision: Decision, durationUs: number, data: JsonObject): void {
    this.#rateOf(tenant).count(decision, durationUs);
    const event = this.#makeEvent("decisions", data);
    const latest = this.#latest.get(tenant) ?? [];
    this.#latest.set(tenant, latest);
    if (latest.push(event) > 2 * maxLatest) latest.splice(0, maxLatest);
    for (const listener of this.#listeners(tenant, "decisions")) listener(event);
  }

  /** Returns the latest decisions, newest first. */
  latest(tenant: string): readonly LiveEvent[] {
    return (this.#latest.get(tenant) ?? []).slice(-maxLatest).reverse();
  }

  /** Returns the data of the channel `metrics`. */
  summary(tenant: string): JsonObject {
    return this.#rateOf(tenant).summary();
  }

  /** Publishes the channel `metrics` of each tenant with subscribers. */
  publishMetrics(): void {
    const tenants = new Set([...this.#subscriptions].map(({ tenant }) => tenant));
    for (const tenant of tenants) {
      this.publish(tenant, "metrics", () => this.summary(tenant));
    }
  }

  *#listeners(tenant: string, channel: LiveChannel): Iterable<LiveListener> {
    for (const each of this.#subscriptions)
      if (each.tenant === tenant && each.channels.has(channel)) yield each.listener;
  }

  #makeEvent(channel: LiveChannel, data: JsonObject): LiveEvent {
    const shown = this.#showLabels || data.label === undefined ? data : { ...data, label: null };
    return { channel, time: new Date(this.#clock()).toISOString(), data: shown };
  }

  #rateOf(tenant: string): DecisionRate {
    const rate = this.#rates.get(tenant) ?? new DecisionRate();
    this.#rates.set(tenant, rate);
    return rate;
  }
}

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

const maxDurations = 512;

/** Number of a tenant's decisions since the start, and the durations of the latest. */
class DecisionRate {
  readonly #counts: Record<Decision, number> = { allow: 0, review: 0, block: 0 };
  readonly #durations: number[] = [];
  #total = 0;

  count(decision: Decision, durationUs: number): void {
    this.#counts[decision]++;
    this.#durations[this.#total % maxDurations] = durationUs;
    this.#total++;
  }

  /** Totals, and percentiles of the policy time of the last 512; null before the first. */
  summary(): JsonObject {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    const at = (share: number): number | null => sorted[Math.floor(share * (sorted.length - 1))] ?? null;
    return { ...this.#counts, total: this.#total, policy_p50_us: at(0.5), policy_p99_us: at(0.99) };
  }
}
