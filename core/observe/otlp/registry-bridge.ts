import { type HrTime, ValueType } from "@opentelemetry/api";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { Clock } from "../../kernel/port.ts";
import type { RegistryMetric, RegistryValue } from "../registry-metric.ts";

const units: readonly (readonly [suffix: RegExp, unit: string])[] = [
  [/_seconds(_total)?$/, "s"],
  [/_bytes(_total)?$/, "By"],
  [/_ratio$/, "1"],
];

/** What `/metrics` says, in the words of OTLP: the same names, labels and numbers, since the same start. */
export class RegistryBridge implements MetricProducer {
  readonly #read: () => Promise<readonly RegistryMetric[]>;
  readonly #clock: Clock;
  readonly #startTime: HrTime;

  constructor(read: () => Promise<readonly RegistryMetric[]>, clock: Clock) {
    this.#read = read;
    this.#clock = clock;
    this.#startTime = hrTime(clock());
  }

  async collect(): Promise<CollectionResult> {
    const times = { startTime: this.#startTime, endTime: hrTime(this.#clock()) };
    const metrics = (await this.#read()).flatMap((metric) => bridge(metric, times));
    const scopeMetrics = metrics.length === 0 ? [] : [{ scope: { name: "prometheus" }, metrics }];
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] };
  }
}

type Times = Pick<DataPoint<unknown>, "startTime" | "endTime">;

function bridge(metric: RegistryMetric, times: Times): readonly MetricData[] {
  const { name, help, type, values } = metric;
  const unit = units.find(([suffix]) => suffix.test(name))?.[1] ?? "";
  const common = {
    descriptor: { name, description: help, unit, valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const points = (): DataPoint<number>[] =>
    values.map(({ value, labels }) => ({ ...times, value, attributes: attributesOf(labels) }));
  if (type === "counter") {
    return [{ ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() }];
  }
  if (type === "gauge") return [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints: points() }];
  if (type !== "histogram") return [];
  return [{ ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints: histograms(metric, times) }];
}

interface Series {
  readonly attributes: Record<string, string>;
  /** Upper bound and how many were at most that, in the order of the bounds. */
  readonly buckets: (readonly [bound: number, upTo: number])[];
  sum: number;
}

function histograms({ name, values }: RegistryMetric, times: Times): DataPoint<Histogram>[] {
  const series = new Map<string, Series>();
  for (const { value, labels, metricName } of values) {
    const { le, ...rest } = labels;
    const key = JSON.stringify(rest);
    const own = series.get(key) ?? { attributes: attributesOf(rest), buckets: [], sum: 0 };
    series.set(key, own);
    if (metricName === `${name}_bucket`)
      own.buckets.push([le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le), value]);
    else if (metricName === `${name}_sum`) own.sum = value;
  }
  return [...series.values()].map(({ attributes, buckets, sum }) => ({
    ...times,
    attributes,
    value: { buckets: separate(buckets), sum, count: buckets.at(-1)?.[1] ?? 0 },
  }));
}

/** Prometheus counts what is at most a bound, OTLP what is between two. */
function separate(buckets: Series["buckets"]): Histogram["buckets"] {
  return {
    boundaries: buckets.slice(0, -1).map(([bound]) => bound),
    counts: buckets.map(([, upTo], at) => upTo - (buckets[at - 1]?.[1] ?? 0)),
  };
}

function attributesOf(labels: RegistryValue["labels"]): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
}
