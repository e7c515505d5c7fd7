import { Histogram, type HistogramConfiguration, type Registry } from "prom-client";
import type { Protocol } from "../action/envelope.ts";
import type { TraceContext } from "../action/trace.ts";
import type { Exemplar, RegistryMetric, RegistryValue } from "./open-metrics.ts";

const policySeconds = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.025, 0.25];

/** From a millisecond to a minute. */
export const requestSeconds: number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Durations of policy evaluation and dispatch. */
export class LatencyMetrics {
  /** Durations of policy evaluations. */
  readonly policy: LatencyHistogram<"phase">;
  readonly #dispatch: LatencyHistogram<"protocol">;

  /** `exemplars` keeps the latest trace of each bucket. */
  constructor(registry: Registry, exemplars: boolean) {
    const registers = [registry];
    const policy = {
      name: "gateway_policy_duration_seconds",
      help: "Duration of one evaluation by the policy chain",
      labelNames: ["phase"] as const,
      buckets: policySeconds,
      registers,
    };
    this.policy = new LatencyHistogram(policy, exemplars);
    const dispatch = {
      name: "gateway_dispatch_duration_seconds",
      help: "Duration of dispatches by protocol; for streamed model responses, until the stream begins",
      labelNames: ["protocol"] as const,
      buckets: requestSeconds,
      registers,
    };
    this.#dispatch = new LatencyHistogram(dispatch, exemplars);
  }

  /** Measures a dispatch, whatever its result. */
  async timeDispatch<T>(protocol: Protocol, answer: Promise<T>, trace: TraceContext | undefined): Promise<T> {
    const start = performance.now();
    try {
      return await answer;
    } finally {
      this.#dispatch.observe({ protocol }, (performance.now() - start) / 1000, trace);
    }
  }

  /** Returns a metric with its exemplars. */
  annotate(metric: RegistryMetric): RegistryMetric {
    const latency = [this.policy, this.#dispatch].find(({ name }) => name === metric.name);
    return latency === undefined ? metric : { ...metric, values: latency.annotate(metric.values) };
  }
}

/** A histogram of durations with optional exemplars, which prom-client supports only in its OpenMetrics registry. */
class LatencyHistogram<Label extends string> {
  readonly name: string;
  readonly #histogram: Histogram<string>;
  readonly #bounds: readonly number[];
  /** One per bucket of a series; null where exemplars are off. */
  readonly #exemplars: Map<string, Exemplar> | null;

  constructor(config: HistogramConfiguration<Label> & { readonly buckets: number[] }, exemplars: boolean) {
    this.name = config.name;
    this.#histogram = new Histogram<string>(config as HistogramConfiguration<string>);
    this.#bounds = config.buckets;
    this.#exemplars = exemplars ? new Map() : null;
  }

  /** Only sampled traces become exemplars: others cannot be looked up. */
  observe(labels: Readonly<Record<Label, string>>, seconds: number, trace: TraceContext | undefined): void {
    this.#histogram.observe(labels, seconds);
    if (this.#exemplars === null || trace?.sampled !== true) return;
    const le = this.#bounds.find((bound) => seconds <= bound) ?? "+Inf";
    const labelSet = { trace_id: trace.traceId, span_id: trace.spanId };
    this.#exemplars.set(keyOf({ ...labels, le }), { labelSet, value: seconds, timestamp: Date.now() / 1000 });
  }

  /** Returns the values, each bucket's with its exemplar. */
  annotate(values: readonly RegistryValue[]): RegistryMetric["values"] {
    return values.map((value) => ({ ...value, exemplar: this.#exemplars?.get(keyOf(value.labels)) }));
  }
}

function keyOf(labels: RegistryValue["labels"]): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
