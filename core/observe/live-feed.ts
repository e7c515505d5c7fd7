import type { Decision } from "../action/decision.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";

const maxLatest = 200;

/** Hears of each event once, as it happens; must not throw. */
type LiveListener = (event: LiveEvent) => void;

interface Subscription {
  readonly tenant: string;
  readonly channels: ReadonlySet<LiveChannel>;
  readonly listener: LiveListener;
}

/**
 * Tells whoever listens what happens to a tenant, as it happens, and remembers its last decisions. Only ever the
 * listener's own tenant. Tenants are those of the configuration: their number is bounded by it.
 */
export class LiveFeed {
  readonly #clock: Clock;
  readonly #tellsLabels: boolean;
  readonly #subscriptions = new Set<Subscription>();
  readonly #rates = new Map<string, DecisionRate>();
  readonly #latest = new Map<string, LiveEvent[]>();

  /** `tellsLabels`: false where a session is known by its id alone. */
  constructor(clock: Clock, tellsLabels: boolean) {
    this.#clock = clock;
    this.#tellsLabels = tellsLabels;
  }

  /** Returns what ends it. */
  subscribe(tenant: string, channels: ReadonlySet<LiveChannel>, listener: LiveListener): () => void {
    const subscription = { tenant, channels, listener };
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  /** `make` is asked only where somebody listens. */
  publish(tenant: string, channel: LiveChannel, make: () => JsonObject): void {
    let event: LiveEvent | undefined;
    for (const listener of this.#listeners(tenant, channel)) {
      event ??= this.#tell(channel, make());
      listener(event);
    }
  }

  /** A decision: told, counted for the channel `metrics`, and remembered as one of the last 200. */
  decide(tenant: string, decision: Decision, durationUs: number, data: JsonObject): void {
    this.#rateOf(tenant).count(decision, durationUs);
    const event = this.#tell("decisions", data);
    const latest = this.#latest.get(tenant) ?? [];
    this.#latest.set(tenant, latest);
    if (latest.push(event) > 2 * maxLatest) latest.splice(0, maxLatest);
    for (const listener of this.#listeners(tenant, "decisions")) listener(event);
  }

  /** The last decisions, the latest first. */
  latest(tenant: string): readonly LiveEvent[] {
    return (this.#latest.get(tenant) ?? []).slice(-maxLatest).reverse();
  }

  /** What the channel `metrics` tells. */
  standing(tenant: string): JsonObject {
    return this.#rateOf(tenant).summary();
  }

  /** Tells each listener of the channel `metrics` how its tenant stands. */
  publishMetrics(): void {
    const tenants = new Set([...this.#subscriptions].map(({ tenant }) => tenant));
    for (const tenant of tenants) {
      this.publish(tenant, "metrics", () => this.standing(tenant));
    }
  }

  *#listeners(tenant: string, channel: LiveChannel): Iterable<LiveListener> {
    for (const each of this.#subscriptions)
      if (each.tenant === tenant && each.channels.has(channel)) yield each.listener;
  }

  #tell(channel: LiveChannel, data: JsonObject): LiveEvent {
    const told = this.#tellsLabels || data.label === undefined ? data : { ...data, label: null };
    return { channel, time: new Date(this.#clock()).toISOString(), data: told };
  }

  #rateOf(tenant: string): DecisionRate {
    const rate = this.#rates.get(tenant) ?? new DecisionRate();
    this.#rates.set(tenant, rate);
    return rate;
  }
}

/** What can be watched while it happens. */
export const liveChannels = ["decisions", "approvals", "risk", "metrics"] as const;
export type LiveChannel = (typeof liveChannels)[number];

/** Something that happened to a tenant. It tells no argument and no answer. */
export interface LiveEvent {
  readonly channel: LiveChannel;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly data: JsonObject;
}

const maxDurations = 512;

/** How many decisions a tenant got since the start, and how long the last of them took. */
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
