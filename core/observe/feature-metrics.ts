import type { Counter, Gauge } from "prom-client";
import { type TicketEvent, ticketEvents } from "../action/capability-ticket.ts";
import type { BucketHistogram } from "./bucket-histogram.ts";
import type { MetricRegistry } from "./metric-registry.ts";

const fuelShares = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1];

/** Metrics of policy engines. */
export class EngineMetrics {
  readonly #failures: Counter<"engine" | "reason">;

  constructor(registry: MetricRegistry) {
    this.#failures = registry.counter(
      "gateway_engine_failures_total",
      "Actions that an engine could not judge, which blocks them in mode enforce, by engine and reason",
      "engine",
      "reason",
    );
  }

  /** Both are of closed lists of the engines. */
  failed(engine: string, reason: string): void {
    this.#failures.inc({ engine, reason });
  }
}

/** Metrics of plugins. */
export class PluginMetrics {
  readonly #breaches: Counter<"reason">;
  readonly #circuitOpened: Counter;
  readonly #fuel: BucketHistogram;
  readonly #threads: Gauge;
  readonly #waiting: Gauge;

  constructor(registry: MetricRegistry) {
    this.#breaches = registry.counter(
      "gateway_plugin_breaches_total",
      "Plugin calls that exceeded a bound and blocked the action, by reason",
      "reason",
    );
    this.#circuitOpened = registry.counter(
      "gateway_plugin_circuit_opened_total",
      "Circuits opened for a plugin and tenant after repeated failures; until one closes, the plugin blocks without being called",
    );
    this.#fuel = registry.histogram(
      "gateway_plugin_fuel_ratio",
      "Share of its fuel that a plugin call used; 1 where it ran out",
      fuelShares,
    );
    this.#threads = registry.gauge("gateway_plugin_threads", "Threads for long plugin calls, idle or busy");
    this.#waiting = registry.gauge("gateway_plugin_calls_waiting", "Long plugin calls waiting for a thread");
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

/** The series that exist from the start: a rate does not see the first increment of a new series. */
const possibleKills: readonly (readonly [KillScope, KillReason])[] = [
  ["session", "operator"],
  ["session", "review_flood"],
  ["session", "risk"],
  ["principal", "operator"],
  ["tenant", "operator"],
  ["gateway", "operator"],
];

/** Metrics of sessions. */
export class SessionMetrics {
  readonly #kills: Counter<"scope" | "reason">;
  readonly #wouldKill: Counter;
  readonly #taints: Counter;
  readonly #watched: Gauge;

  constructor(registry: MetricRegistry) {
    this.#kills = registry.counter("gateway_kills_total", "Kills by scope and reason", "scope", "reason");
    for (const [scope, reason] of possibleKills) this.#kills.inc({ scope, reason }, 0);
    this.#wouldKill = registry.counter(
      "gateway_session_would_kill_total",
      "Sessions that would have been killed (shadow mode)",
    );
    this.#taints = registry.counter("gateway_session_taints_total", "Taints newly added to sessions");
    this.#watched = registry.gauge("gateway_watched_sessions", "Sessions whose latest actions are in memory");
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

/** Metrics of capability tickets. */
export class TicketMetrics {
  readonly #events: Counter<"event">;

  constructor(registry: MetricRegistry) {
    this.#events = registry.counter(
      "gateway_tickets_total",
      "Capability ticket events: issued, used, refused, revoked or expired",
      "event",
    );
    for (const event of ticketEvents) this.#events.inc({ event }, 0);
  }

  happened(event: TicketEvent, times: number): void {
    this.#events.inc({ event }, times);
  }
}

/** Metrics of the report database. */
export class ReportMetrics {
  readonly #backlog: Gauge;

  constructor(registry: MetricRegistry) {
    this.#backlog = registry.gauge(
      "gateway_report_backlog_records",
      "Records that the report database does not have yet; 0 where none is configured",
    );
  }

  backlog(records: number): void {
    this.#backlog.set(records);
  }
}

/** The signals exported to a collector. */
type Signal = "spans" | "metrics";
/** `failed`: the collector did not accept it. `dropped`: it was never sent, for lack of room or time. */
export type ExportResult = "sent" | "failed" | "dropped";

/** Metrics of the OpenTelemetry export. */
export class TelemetryMetrics {
  readonly #exports: Counter<"signal" | "result">;

  constructor(registry: MetricRegistry) {
    this.#exports = registry.counter(
      "gateway_telemetry_total",
      "Spans and metric exports sent to the collector, by result",
      "signal",
      "result",
    );
  }

  exported(signal: Signal, result: ExportResult, count: number): void {
    this.#exports.inc({ signal, result }, count);
  }
}
