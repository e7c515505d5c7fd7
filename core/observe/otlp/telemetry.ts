import {
  type Attributes,
  type Histogram as HistogramApi,
  type HrTime,
  type Meter,
  ValueType,
} from "@opentelemetry/api";
import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { emptyResource, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { Clock, Random } from "../../action/id.ts";
import type { Tracer } from "../../action/trace.ts";
import type { TelemetryTarget } from "../../config/gateway-config.ts";
import type { EgressGuard } from "../../egress/egress-guard.ts";
import type { TelemetryMetrics } from "../feature-metrics.ts";
import type { RegistryMetric, RegistryValue } from "../open-metrics.ts";
import { type Delivery, OtlpSender, Reporter, SpanQueue } from "./sender.ts";
import { type ModelAsked, type ProviderTypes, RoadTracer } from "./tracer.ts";

export interface TelemetryOptions {
  readonly target: TelemetryTarget & { readonly endpoint: string };
  readonly identity: { readonly name: string; readonly version: string };
  readonly providers: ProviderTypes;
  readonly metrics: TelemetryMetrics;
  /** Returns the current metrics. */
  readonly readMetrics: () => Promise<readonly RegistryMetric[]>;
  readonly clock: Clock;
  readonly random: Random;
  readonly egress: EgressGuard;
  /** Called with the reason of each failed export. */
  readonly onFault: (fault: string) => void;
}

/** The export of traces and metrics to a collector. */
export interface Telemetry {
  readonly tracer: Tracer;
  /** Exports what is waiting, for at most 3 s. */
  close(): Promise<void>;
}

/** Starts the export to a collector. No request ever waits for the collector. */
export function openTelemetry(options: TelemetryOptions): Telemetry {
  const { target, identity, providers, metrics, random, egress, onFault } = options;
  const sender = new OtlpSender(target, egress, onFault);
  const resource = resourceFromAttributes({ "service.name": identity.name, "service.version": identity.version });
  const serializer = target.protocol === "http/json" ? JsonTraceSerializer : ProtobufTraceSerializer;
  const processor = new SpanQueue({
    maxWaiting: target.maxQueuedSpans,
    send: async (spans): Promise<Delivery> => {
      const body = serializer.serializeRequest(spans);
      return body === undefined ? "refused" : sender.post("/v1/traces", body);
    },
    count: (result, count) => metrics.exported("spans", result, count),
    random,
  });
  const { samplePercent } = target;
  const reporter = openReporter(options, resource, sender);
  const genAi = reporter && new GenAiMetrics(reporter.meter(identity.name, identity.version));
  const onModelAsked = (asked: ModelAsked): void => genAi?.record(asked);
  const tracer = new RoadTracer({
    resource,
    processor,
    samplePercent,
    random,
    scope: identity,
    providers,
    onModelAsked,
  });
  return {
    tracer,
    close: async () => {
      await Promise.all([processor.shutdown(), reporter?.close()]);
      await sender.close();
    },
  };
}

/** Undefined where metrics are not exported. */
function openReporter(
  { target, metrics, readMetrics, clock }: TelemetryOptions,
  resource: Resource,
  sender: OtlpSender,
): Reporter | undefined {
  if (target.metricsIntervalMs === 0) return undefined;
  const bridge = new RegistryBridge(readMetrics, clock);
  return new Reporter({ target, resource, sender, bridge, count: (result) => metrics.exported("metrics", result, 1) });
}

const units: readonly (readonly [suffix: RegExp, unit: string])[] = [
  [/_seconds(_total)?$/, "s"],
  [/_bytes(_total)?$/, "By"],
  [/_ratio$/, "1"],
];

/** Converts the Prometheus registry to OTLP: the same names, labels and values, cumulative since the same start. */
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

/** Powers of two of a hundredth of a second, and of four, as the conventions advise. */
const seconds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100);
const tokens = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** All are from bounded sets: models are those that routes name. */
const labels = ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"] as const;

/** The client metrics of OpenTelemetry's conventions for generative AI. */
export class GenAiMetrics {
  readonly #duration: HistogramApi;
  readonly #tokens: HistogramApi;

  constructor(meter: Meter) {
    this.#duration = meter.createHistogram("gen_ai.client.operation.duration", {
      description: "Duration of a model request, of a streamed one until its last event",
      unit: "s",
      advice: { explicitBucketBoundaries: seconds },
    });
    this.#tokens = meter.createHistogram("gen_ai.client.token.usage", {
      description: "Tokens of one model request, as counted by the provider",
      unit: "{token}",
      advice: { explicitBucketBoundaries: tokens },
    });
  }

  record({ attributes, seconds: taken, usage }: ModelAsked): void {
    const known: Attributes = {};
    for (const label of labels) if (attributes[label] !== undefined) known[label] = attributes[label];
    this.#duration.record(taken, known);
    if (usage === undefined) return;
    this.#tokens.record(usage.inputTokens, { ...known, "gen_ai.token.type": "input" });
    this.#tokens.record(usage.outputTokens, { ...known, "gen_ai.token.type": "output" });
  }
}
