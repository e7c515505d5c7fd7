import type { TelemetryConfig } from "./gateway-config.ts";
import type { FileForm } from "./schema.ts";
import type { SourcedValues } from "./secret.ts";

/** Where telemetry goes, with the headers that the environment holds. */
export function buildTelemetry(form: FileForm["telemetry"], { values, origins }: SourcedValues): TelemetryConfig {
  return {
    endpoint: form.endpoint,
    protocol: form.protocol,
    headers: values,
    origins,
    timeoutMs: form.timeout_ms,
    samplePercent: form.sample_percent,
    mostQueuedSpans: form.max_queued_spans,
    metricsIntervalMs: form.metrics_interval_ms,
    exemplars: form.exemplars,
  };
}
