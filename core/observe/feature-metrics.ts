import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { type TicketEvent, ticketEvents } from "../action/capability-ticket.ts";

const appendSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchRecords = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** What is counted of evidence on its way to the disk, on the registry of all metrics. */
export class EvidenceMetrics {
  readonly #append: Histogram;
  readonly #batch: Histogram;
  readonly #failures: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#append = new Histogram({
      name: "gateway_evidence_append_duration_seconds",
      help: "Time from a record's getting its place in the chain to its being durable",
      buckets: appendSeconds,
      registers,
    });
    this.#batch = new Histogram({
      name: "gateway_evidence_batch_records",
      help: "Records that became durable together, in one synced write",
      buckets: batchRecords,
      registers,
    });
    this.#failures = new Counter({
      name: "gateway_evidence_write_failures_total",
      help: "Writes of evidence that failed; none of their records is vouched for",
      registers,
    });
  }

  /** Milliseconds that only grow. */
  elapsedMs(): number {
    return performance.now();
  }

  /** A write is durable; `waitedMs` is how long each of its records waited for that. */
  committed(waitedMs: readonly number[]): void {
    this.#batch.observe(waitedMs.length);
    for (const each of waitedMs) this.#append.observe(each / 1000);
  }

  writeFailed(): void {
    this.#failures.inc();
  }
}

const fuelShares = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1];

/** What is counted of plugins, on the registry of all metrics. */
export class PluginMetrics {
  readonly #breaches: Counter<"reason">;
  readonly #circuitOpened: Counter;
  readonly #fuel: Histogram;
  readonly #threads: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#breaches = new Counter({
      name: "gateway_plugin_breaches_total",
      help: "Times a plugin did not answer within its bounds and the action was blocked, by why",
      labelNames: ["reason"],
      registers,
    });
    this.#circuitOpened = new Counter({
      name: "gateway_plugin_circuit_opened_total",
      help: "Times a plugin's circuit opened for a tenant after repeated failures; until it closes, the plugin blocks without being called",
      registers,
    });
    this.#fuel = new Histogram({
      name: "gateway_plugin_fuel_ratio",
      help: "Share of its fuel that a call of a plugin took; 1 where it ran out",
      buckets: fuelShares,
      registers,
    });
    this.#threads = new Gauge({
      name: "gateway_plugin_threads",
      help: "Threads that stand by for long calls of plugins, or run one",
      registers,
    });
    this.#waiting = new Gauge({
      name: "gateway_plugin_calls_waiting",
      help: "Long calls of plugins that wait for a thread now",
      registers,
    });
  }

  /** `reason` is of the closed list of a plugin's breaches. */
  breached(reason: string): void {
    this.#breaches.inc({ reason });
  }

  circuitOpened(): void {
    this.#circuitOpened.inc();
  }

  /** `share` from 0 to 1. */
  spent(share: number): void {
    this.#fuel.observe(share);
  }

  threads(count: number): void {
    this.#threads.set(count);
  }

  callsWaiting(count: number): void {
    this.#waiting.set(count);
  }
}

type KillScope = "session" | "principal" | "tenant" | "gateway";
type KillReason = "operator" | "review_flood" | "risk";

/** All of them there from the start: a rate takes no notice of a first kill that brings its own series. */
const possibleKills: readonly (readonly [KillScope, KillReason])[] = [
  ["session", "operator"],
  ["session", "review_flood"],
  ["session", "risk"],
  ["principal", "operator"],
  ["tenant", "operator"],
  ["gateway", "operator"],
];

/** What is counted of sessions, on the registry of all metrics. */
export class SessionMetrics {
  readonly #kills: Counter<"scope" | "reason">;
  readonly #wouldKill: Counter;
  readonly #taints: Counter;
  readonly #watched: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#kills = new Counter({
      name: "gateway_kills_total",
      help: "What the kill switch stopped, by how much and why",
      labelNames: ["scope", "reason"],
      registers,
    });
    for (const [scope, reason] of possibleKills) this.#kills.inc({ scope, reason }, 0);
    this.#wouldKill = new Counter({
      name: "gateway_session_would_kill_total",
      help: "Times a session came to the risk it would be stopped for, were that not in shadow mode",
      registers,
    });
    this.#taints = new Counter({
      name: "gateway_session_taints_total",
      help: "Times a session was tainted with something it was not tainted with before",
      registers,
    });
    this.#watched = new Gauge({
      name: "gateway_watched_sessions",
      help: "Sessions whose last actions are in memory",
      registers,
    });
  }

  killed(scope: KillScope, reason: KillReason): void {
    this.#kills.inc({ scope, reason });
  }

  wouldKill(): void {
    this.#wouldKill.inc();
  }

  tainted(): void {
    this.#taints.inc();
  }

  watchedSessions(count: number): void {
    this.#watched.set(count);
  }
}

/** What is counted of capability tickets, on the registry of all metrics. */
export class TicketMetrics {
  readonly #events: Counter<"event">;

  constructor(registry: Registry) {
    this.#events = new Counter({
      name: "gateway_tickets_total",
      help: "Capability tickets issued, revoked and expired, and times one was used, or came with an action and permitted nothing",
      labelNames: ["event"],
      registers: [registry],
    });
    for (const event of ticketEvents) this.#events.inc({ event }, 0);
  }

  happened(event: TicketEvent, times: number): void {
    this.#events.inc({ event }, times);
  }
}

/** What is told to a collector. */
type Signal = "spans" | "metrics";
/** `failed`: the collector did not take it. `dropped`: it was never asked to, for want of room or time. */
export type TellResult = "sent" | "failed" | "dropped";

/** What is counted of OpenTelemetry, on the registry of all metrics. */
export class TelemetryMetrics {
  readonly #told: Counter<"signal" | "result">;

  constructor(registry: Registry) {
    this.#told = new Counter({
      name: "gateway_telemetry_total",
      help: "Spans, and reports of metrics, by what became of them on their way to the collector",
      labelNames: ["signal", "result"],
      registers: [registry],
    });
  }

  told(signal: Signal, result: TellResult, count: number): void {
    this.#told.inc({ signal, result }, count);
  }
}
