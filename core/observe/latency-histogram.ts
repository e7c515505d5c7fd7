import { Histogram, type HistogramConfiguration } from "prom-client";
import type { TraceContext } from "../kernel/trace-context.ts";
import type { Exemplar, RegistryMetric, RegistryValue } from "./registry-metric.ts";

/** Durations, each bucket with the trace of the latest where that is asked for: of prom-client only OpenMetrics has them. */
export class LatencyHistogram<Label extends string> {
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
