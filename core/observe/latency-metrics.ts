import { Histogram, type HistogramConfiguration, type Registry } from "prom-client";
import type { Phase, Protocol } from "../action/envelope.ts";
import type { TraceContext } from "../action/trace.ts";
import type { Exemplar, RegistryMetric, RegistryValue } from "./open-metrics.ts";

const policySeconds = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.025, 0.25];

/** From a millisecond to a minute. */
export const requestSeconds: number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** How long the stretches of the road take, on the registry of all metrics. */
export class LatencyMetrics {
  readonly #policy: LatencyHistogram<"phase">;
  readonly #dispatch: LatencyHistogram<"protocol">;

  /** `exemplars`: whether each bucket knows the trace of the latest. */
  constructor(registry: Registry, exemplars: boolean) {
    const registers = [registry];
    const policy = {
      name: "gateway_policy_duration_seconds",
      help: "Time the policy chain took for one evaluation",
      labelNames: ["phase"] as const,
      buckets: policySeconds,
      registers,
    };
    this.#policy = new LatencyHistogram(policy, exemplars);
    const dispatch = {
      name: "gateway_dispatch_duration_seconds",
      help: "Time the upstream of a permitted action took, a provider until its stream began, by protocol",
      labelNames: ["protocol"] as const,
      buckets: requestSeconds,
      registers,
    };
    this.#dispatch = new LatencyHistogram(dispatch, exemplars);
  }

  judged(phase: Phase, seconds: number, trace: TraceContext | undefined): void {
    this.#policy.observe({ phase }, seconds, trace);
  }

  /** Times an action on its way to its upstream and back, however that ends. */
  async timeDispatch<T>(protocol: Protocol, answer: Promise<T>, trace: TraceContext | undefined): Promise<T> {
    const start = performance.now();
    try {
      return await answer;
    } finally {
      this.#dispatch.observe({ protocol }, (performance.now() - start) / 1000, trace);
    }
  }

  /** A metric with the exemplars there are of it. */
  annotate(metric: RegistryMetric): RegistryMetric {
    const latency = [this.#policy, this.#dispatch].find(({ name }) => name === metric.name);
    return latency === undefined ? metric : { ...metric, values: latency.annotate(metric.values) };
  }
}

/** Durations, each bucket with the trace of the latest where that is asked for: of prom-client only OpenMetrics has them. */
class LatencyHistogram<Label extends string> {
  readonly name: string;
  readonly #histogram: Histogram<string>;
  readonly #bounds: readonly number[];
  /** One a bucket of a series; null where none are kept. */
  readonly #exemplars: Map<string, Exemplar> | null;

  constructor(config: HistogramConfiguration<Label> & { readonly buckets: number[] }, exemplars: boolean) {
    this.name = config.name;
    this.#histogram = new Histogram<string>(config as HistogramConfiguration<string>);
    this.#bounds = config.buckets;
    this.#exemplars = exemplars ? new Map() : null;
  }

  /** A trace that nobody is told of is no exemplar: whoever looked it up would find nothing. */
  observe(labels: Readonly<Record<Label, string>>, seconds: number, trace: TraceContext | undefined): void {
    this.#histogram.observe(labels, seconds);
    if (this.#exemplars === null || trace?.sampled !== true) return;
    const le = this.#bounds.find((bound) => seconds <= bound) ?? "+Inf";
    const labelSet = { trace_id: trace.traceId, span_id: trace.spanId };
    this.#exemplars.set(keyOf({ ...labels, le }), { labelSet, value: seconds, timestamp: Date.now() / 1000 });
  }

  /** The same values, each bucket's with its exemplar. */
  annotate(values: readonly RegistryValue[]): RegistryMetric["values"] {
    return values.map((value) => ({ ...value, exemplar: this.#exemplars?.get(keyOf(value.labels)) }));
  }
}

function keyOf(labels: RegistryValue["labels"]): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
