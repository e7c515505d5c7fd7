import { type Counter, collectDefaultMetrics, type Gauge, Registry } from "prom-client";
import type { ApprovalState } from "../action/approval.ts";
import type { ActionEnvelope, Outcome, Protocol } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Subscriber } from "../action/subscriber.ts";
import type { TraceContext } from "../action/trace.ts";
import type { BucketHistogram } from "./bucket-histogram.ts";
import {
  EngineMetrics,
  PluginMetrics,
  ReportMetrics,
  SessionMetrics,
  TelemetryMetrics,
  TicketMetrics,
} from "./feature-metrics.ts";
import { MetricRegistry } from "./metric-registry.ts";
import {
  type Exemplar,
  openMetricsText,
  openMetricsType,
  type RegistryMetric,
  type RegistryValue,
  wantsOpenMetrics,
} from "./open-metrics.ts";
import { ShadowLog } from "./shadow-log.ts";
import { StateMetrics } from "./state-metrics.ts";

/** The three listening ports, by what they serve. */
export type Port = "gateway" | "admin" | "metrics";

/** Gauges of Node's own whose name says counter, which promtool takes for a fault; the same numbers come by type. */
const misnamed = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

const policySeconds = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.025, 0.25];
/** From a millisecond to a minute. */
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The limits of `gateway_fair_share_refusals_total`. */
const shareLimits = ["key_calls", "tenant_calls", "key_cpu", "tenant_cpu", "key_bytes", "address"] as const;

/** The metrics of the service. Every label comes from a closed set in the source, never from input. */
export class Metrics implements Subscriber {
  readonly #registry = new MetricRegistry();
  readonly sessions: SessionMetrics = new SessionMetrics(this.#registry);
  readonly evidence: EvidenceMetrics = new EvidenceMetrics(this.#registry);
  readonly engines: EngineMetrics = new EngineMetrics(this.#registry);
  readonly plugins: PluginMetrics = new PluginMetrics(this.#registry);
  readonly tickets: TicketMetrics = new TicketMetrics(this.#registry);
  readonly reports: ReportMetrics = new ReportMetrics(this.#registry);
  readonly telemetry: TelemetryMetrics = new TelemetryMetrics(this.#registry);
  /** Decisions of rules and policies in shadow mode. */
  readonly shadowLog: ShadowLog = new ShadowLog(this.#registry);
  readonly state: StateMetrics = new StateMetrics(this.#registry);
  readonly #exemplars: boolean;
  readonly #policySeconds: LatencyHistogram;
  readonly #dispatchSeconds: LatencyHistogram;
  readonly #requests: Counter<"port" | "route" | "status">;
  readonly #seconds: BucketHistogram;
  readonly #decisions: Counter<"protocol" | "phase" | "decision">;
  readonly #outcomes: Counter<"protocol" | "status">;
  readonly #redactions: Counter<"protocol">;
  readonly #droppedNotifications: Counter<"reason">;
  readonly #approvals: Counter<"state">;
  readonly #sessions: Gauge;
  readonly #held: Gauge;
  readonly #witnessed: Counter<"result">;
  readonly #webhooks: Counter<"result">;
  readonly #tokens: Counter<"direction">;
  readonly #usageRefusals: Counter<"reason">;
  readonly #adminLimited: Counter<"by">;
  readonly #shareRefusals: Counter<"limit">;

  /** `version` is that of this program; `exemplars` attaches trace ids to the buckets of durations. */
  constructor(version: string, exemplars: boolean = false) {
    this.#exemplars = exemplars;
    const registry = this.#registry;
    const policy = { name: "gateway_policy_duration_seconds", label: "phase", buckets: policySeconds } as const;
    this.#policySeconds = new LatencyHistogram(
      registry,
      { ...policy, help: "Duration of one evaluation by the policy chain" },
      exemplars,
    );
    const dispatch = { name: "gateway_dispatch_duration_seconds", label: "protocol", buckets: requestSeconds } as const;
    this.#dispatchSeconds = new LatencyHistogram(
      registry,
      {
        ...dispatch,
        help: "Duration of dispatches by protocol; for streamed model responses, until the stream begins",
      },
      exemplars,
    );
    collectDefaultMetrics({ register: registry });
    for (const name of misnamed) registry.removeSingleMetric(name);
    registry.gauge("gateway_build_info", "1, with the version", "version").set({ version }, 1);
    this.#requests = registry.counter(
      "gateway_requests_total",
      "HTTP requests answered, by port, route of the route table and status class",
      "port",
      "route",
      "status",
    );
    this.#seconds = registry.histogram(
      "gateway_request_duration_seconds",
      "Time from the request's headers to the end of the response",
      requestSeconds,
      "port",
      "route",
    );
    this.#decisions = registry.counter(
      "gateway_decisions_total",
      "Evaluations by protocol, phase and decision",
      "protocol",
      "phase",
      "decision",
    );
    this.#outcomes = registry.counter(
      "gateway_outcomes_total",
      "Dispatched actions by protocol and outcome",
      "protocol",
      "status",
    );
    this.#redactions = registry.counter(
      "gateway_redactions_total",
      "Redactions in outputs and notifications, by protocol",
      "protocol",
    );
    this.#droppedNotifications = registry.counter(
      "gateway_notifications_dropped_total",
      "Upstream notifications that were not forwarded: blocked by policy, too late, or too many at once",
      "reason",
    );
    this.#approvals = registry.counter("gateway_approvals_total", "Approvals by the state they entered", "state");
    this.#sessions = registry.gauge("gateway_mcp_sessions", "Open MCP sessions and SSE connections");
    this.#held = registry.gauge("gateway_held_calls", "Tool calls held open while waiting for their review");
    this.#witnessed = registry.counter(
      "gateway_witness_pushes_total",
      "Chain heads published to witnesses, by result",
      "result",
    );
    this.#webhooks = registry.counter(
      "gateway_webhook_deliveries_total",
      "Webhook deliveries by result: delivered, failed attempts, dead letters, or lost beyond a bound",
      "result",
    );
    this.#tokens = registry.counter(
      "gateway_model_tokens_total",
      "Tokens of model requests, by direction",
      "direction",
    );
    this.#usageRefusals = registry.counter(
      "gateway_model_usage_refusals_total",
      "Model requests refused by a limit or a budget, by reason",
      "reason",
    );
    this.#adminLimited = registry.counter(
      "gateway_admin_rate_limited_total",
      "Requests to the admin port refused by the rate limit of a key, or of an address without a valid key",
      "by",
    );
    this.#shareRefusals = registry.counter(
      "gateway_fair_share_refusals_total",
      "Requests to the gateway port refused because their key, tenant, or address without a valid key had spent its share, by limit",
      "limit",
    );
    this.#countFromZero();
  }

  answered(port: Port, route: string, status: number, seconds: number): void {
    this.#requests.inc({ port, route, status: `${Math.floor(status / 100)}xx` });
    this.#seconds.observe(seconds, port, route);
  }

  evaluated({ protocol, phase }: ActionEnvelope, evaluation: Evaluation, trace: TraceContext | undefined): void {
    this.#decisions.inc({ protocol, phase, decision: evaluation.decision });
    const seconds = evaluation.durationUs / 1e6;
    this.#policySeconds.histogram.observe(seconds, phase);
    if (trace?.sampled === true) this.#policySeconds.keepExemplar(phase, seconds, trace);
  }

  /** Measures a dispatch, whatever its result. */
  async timeDispatch<T>(protocol: Protocol, answer: Promise<T>, trace: TraceContext | undefined): Promise<T> {
    const start = performance.now();
    try {
      return await answer;
    } finally {
      const seconds = (performance.now() - start) / 1000;
      this.#dispatchSeconds.histogram.observe(seconds, protocol);
      if (trace?.sampled === true) this.#dispatchSeconds.keepExemplar(protocol, seconds, trace);
    }
  }

  finished({ protocol }: ActionEnvelope, { status }: Outcome): void {
    this.#outcomes.inc({ protocol, status });
  }

  redacted(protocol: Protocol, places: number): void {
    this.#redactions.inc({ protocol }, places);
  }

  notificationDropped(reason: "policy" | "late" | "full"): void {
    this.#droppedNotifications.inc({ reason });
  }

  approval(state: ApprovalState): void {
    this.#approvals.inc({ state });
  }

  mcpSessions(count: number): void {
    this.#sessions.set(count);
  }

  heldCalls(count: number): void {
    this.#held.set(count);
  }

  witnessed(result: "published" | "failed"): void {
    this.#witnessed.inc({ result });
  }

  webhookDelivery(result: "delivered" | "failed" | "dead" | "lost"): void {
    this.#webhooks.inc({ result });
  }

  tokensUsed(direction: "input" | "output", count: number): void {
    this.#tokens.inc({ direction }, count);
  }

  usageRefused(reason: "requests" | "tokens" | "principals" | "budget"): void {
    this.#usageRefusals.inc({ reason });
  }

  adminLimited(by: "key" | "address"): void {
    this.#adminLimited.inc({ by });
  }

  shareRefused(limit: (typeof shareLimits)[number]): void {
    this.#shareRefusals.inc({ limit });
  }

  /** Creates the series that alerts watch with 0: Prometheus does not see the step from no series to 1 as an increase. */
  #countFromZero(): void {
    for (const result of ["published", "failed"]) this.#witnessed.inc({ result }, 0);
    for (const result of ["delivered", "failed", "dead", "lost"]) this.#webhooks.inc({ result }, 0);
    for (const reason of ["requests", "tokens", "principals", "budget"]) this.#usageRefusals.inc({ reason }, 0);
    for (const by of ["key", "address"]) this.#adminLimited.inc({ by }, 0);
    for (const limit of shareLimits) this.#shareRefusals.inc({ limit }, 0);
  }

  /** Returns all metrics as data. */
  async read(): Promise<readonly RegistryMetric[]> {
    await this.state.refresh();
    return this.#registry.getMetricsAsJSON();
  }

  /** Returns the exposition for an `Accept` header: OpenMetrics only where exemplars are enabled. */
  async exposition(accept: string | undefined): Promise<{ readonly type: string; readonly text: string }> {
    if (this.#exemplars && wantsOpenMetrics(accept)) {
      return {
        type: openMetricsType,
        text: openMetricsText((await this.read()).map((each) => this.#annotate(each))),
      };
    }
    return { type: Registry.PROMETHEUS_CONTENT_TYPE, text: await this.text() };
  }

  /** Returns a metric with its exemplars. */
  #annotate(metric: RegistryMetric): RegistryMetric {
    const latency = [this.#policySeconds, this.#dispatchSeconds].find(({ name }) => name === metric.name);
    return latency === undefined ? metric : { ...metric, values: latency.annotate(metric.values) };
  }

  /** The exposition text of Prometheus. */
  async text(): Promise<string> {
    await this.state.refresh();
    return this.#registry.metrics();
  }
}

interface LatencyConfig {
  readonly name: string;
  readonly help: string;
  readonly buckets: number[];
  readonly label: string;
}

/** A histogram of durations by one label, with optional exemplars. */
class LatencyHistogram {
  readonly name: string;
  readonly histogram: BucketHistogram;
  readonly #label: string;
  readonly #bounds: readonly number[];
  /** One per bucket of a series; null where exemplars are off. */
  readonly #exemplars: Map<string, Exemplar> | null;

  constructor(registry: MetricRegistry, { name, help, buckets, label }: LatencyConfig, exemplars: boolean) {
    this.name = name;
    this.histogram = registry.histogram(name, help, buckets, label);
    this.#label = label;
    this.#bounds = buckets;
    this.#exemplars = exemplars ? new Map() : null;
  }

  /** Keeps the trace of an observation as the exemplar of its bucket. Only for sampled ones: others cannot be looked up. */
  keepExemplar(labelled: string, seconds: number, trace: TraceContext): void {
    if (this.#exemplars === null) return;
    const le = this.#bounds.find((bound) => seconds <= bound) ?? "+Inf";
    const labelSet = { trace_id: trace.traceId, span_id: trace.spanId };
    this.#exemplars.set(keyOf({ [this.#label]: labelled, le }), {
      labelSet,
      value: seconds,
      timestamp: Date.now() / 1000,
    });
  }

  /** Returns the values, each bucket's with its exemplar. */
  annotate(values: readonly RegistryValue[]): RegistryMetric["values"] {
    return values.map((value) => ({ ...value, exemplar: this.#exemplars?.get(keyOf(value.labels)) }));
  }
}

function keyOf(labels: RegistryValue["labels"]): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const appendSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchRecords = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Metrics of evidence writes. */
export class EvidenceMetrics {
  /** A monotonic clock in milliseconds. */
  readonly elapsedMs: () => number = performance.now.bind(performance);
  readonly #append: BucketHistogram;
  readonly #batch: BucketHistogram;
  readonly #failures: Counter;

  constructor(registry: MetricRegistry) {
    this.#append = registry.histogram(
      "gateway_evidence_append_duration_seconds",
      "Time from a record's sequence number being assigned to the record being durable",
      appendSeconds,
    );
    this.#batch = registry.histogram("gateway_evidence_batch_records", "Records per synced write", batchRecords);
    this.#failures = registry.counter(
      "gateway_evidence_write_failures_total",
      "Failed evidence writes; their records are not acknowledged",
    );
  }

  /** Records a durable write; `waitedMs` holds the waiting time of each of its records. */
  committed(waitedMs: readonly number[]): void {
    this.#batch.observe(waitedMs.length);
    for (const each of waitedMs) this.#append.observe(each / 1000);
  }

  writeFailed(): void {
    this.#failures.inc();
  }
}
