import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import type { Clock, Random } from "../../kernel/port.ts";
import type { Tracer } from "../../kernel/span.ts";
import type { TelemetryTarget } from "../../kernel/telemetry-config.ts";
import type { RegistryMetric } from "../registry-metric.ts";
import type { TelemetryMetrics } from "../telemetry-metrics.ts";
import type { ProviderTypes } from "./attribute.ts";
import { GenAiMetrics } from "./gen-ai-metrics.ts";
import { RegistryBridge } from "./registry-bridge.ts";
import { Reporter } from "./reporter.ts";
import type { ModelAsked } from "./road-span.ts";
import { type Delivery, OtlpSender } from "./sender.ts";
import { SpanQueue } from "./span-queue.ts";
import { RoadTracer } from "./tracer.ts";

export interface TelemetryOptions {
  readonly target: TelemetryTarget & { readonly endpoint: string };
  readonly identity: { readonly name: string; readonly version: string };
  readonly providers: ProviderTypes;
  readonly metrics: TelemetryMetrics;
  /** What `/metrics` says now. */
  readonly readMetrics: () => Promise<readonly RegistryMetric[]>;
  readonly clock: Clock;
  readonly random: Random;
  /** Hears why the collector did not take something, each time. */
  readonly onFault: (fault: string) => void;
}

/** What is told to a collector while the gateway runs. */
export interface Telemetry {
  readonly tracer: Tracer;
  /** Tells what waits, for at most 3 s. */
  close(): Promise<void>;
}

/** Begins to tell a collector. Nothing that a collector does, or fails to do, is waited for by a request. */
export function openTelemetry(options: TelemetryOptions): Telemetry {
  const { target, identity, providers, metrics, random, onFault } = options;
  const sender = new OtlpSender(target, onFault);
  const resource = resourceFromAttributes({ "service.name": identity.name, "service.version": identity.version });
  const serializer = target.protocol === "http/json" ? JsonTraceSerializer : ProtobufTraceSerializer;
  const processor = new SpanQueue({
    most: target.mostQueuedSpans,
    send: async (spans): Promise<Delivery> => {
      const body = serializer.serializeRequest(spans);
      return body === undefined ? "refused" : sender.post("/v1/traces", body);
    },
    count: (result, count) => metrics.told("spans", result, count),
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

/** Undefined where no metrics are to be reported. */
function openReporter(
  { target, metrics, readMetrics, clock }: TelemetryOptions,
  resource: Resource,
  sender: OtlpSender,
): Reporter | undefined {
  if (target.metricsIntervalMs === 0) return undefined;
  const bridge = new RegistryBridge(readMetrics, clock);
  return new Reporter({ target, resource, sender, bridge, count: (result) => metrics.told("metrics", result, 1) });
}
