import type { Meter } from "@opentelemetry/api";
import { JsonMetricsSerializer, ProtobufMetricsSerializer } from "@opentelemetry/otlp-transformer";
import type { Resource } from "@opentelemetry/resources";
import {
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { TelemetryTarget } from "../../kernel/telemetry-config.ts";
import type { TellResult } from "../telemetry-metrics.ts";
import type { OtlpSender } from "./sender.ts";

export interface ReporterOptions {
  readonly target: Pick<TelemetryTarget, "protocol" | "timeoutMs" | "metricsIntervalMs">;
  readonly resource: Resource;
  readonly sender: OtlpSender;
  readonly bridge: MetricProducer;
  readonly count: (result: TellResult) => void;
}

const closeMs = 3_000;

/**
 * Reports metrics now and then: what a report did not bring, the next one does. One is under way at a time, and none is
 * kept.
 */
export class Reporter {
  readonly #provider: MeterProvider;

  constructor({ target, resource, bridge, ...way }: ReporterOptions) {
    const { metricsIntervalMs, timeoutMs, protocol } = target;
    const reader = new PeriodicExportingMetricReader({
      exporter: exporterOf(protocol, way),
      exportIntervalMillis: metricsIntervalMs,
      exportTimeoutMillis: Math.min(timeoutMs, metricsIntervalMs),
      metricProducers: [bridge],
    });
    this.#provider = new MeterProvider({ resource, readers: [reader] });
  }

  meter(name: string, version: string): Meter {
    return this.#provider.getMeter(name, version);
  }

  /** Reports once more, for at most 3 s. */
  async close(): Promise<void> {
    await this.#provider.shutdown({ timeoutMillis: closeMs }).catch(() => undefined);
  }
}

function exporterOf(
  protocol: TelemetryTarget["protocol"],
  { sender, count }: Pick<ReporterOptions, "sender" | "count">,
): PushMetricExporter {
  const serializer = protocol === "http/json" ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const tell = async (metrics: ResourceMetrics): Promise<void> => {
    const body = serializer.serializeRequest(metrics);
    const isSent = body !== undefined && (await sender.post("/v1/metrics", body)) === "sent";
    count(isSent ? "sent" : "failed");
  };
  return {
    // Whoever asks for the report does nothing about one that failed; it is counted here.
    export: (metrics, done) => void tell(metrics).finally(() => done({ code: 0 })),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
}
