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
import type { ReadableSpan, SpanProcessor } from "@opentelemetry/sdk-trace";
import { Pool } from "undici";
import type { Random } from "../../action/id.ts";
import { type RetryDelays, retryDelay } from "../../action/retry.ts";
import type { TelemetryTarget } from "../../config/gateway-config.ts";
import type { EgressGuard } from "../../egress/egress-guard.ts";
import type { ExportResult } from "../feature-metrics.ts";

/** `again`: a retry may succeed. `refused`: it cannot. */
export type Delivery = "sent" | "again" | "refused";

type SenderTarget = Pick<TelemetryTarget, "protocol" | "headers" | "timeoutMs"> & { readonly endpoint: string };

/** Bytes of a response that are read; its content is ignored. */
const maxAnswerBytes = 65_536;
/** Spans and metrics, one request of each at a time. */
const connections = 2;
/** Status codes that OTLP defines as retryable. */
const passing: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** The sockets to one collector. Follows no redirect, and no request outlives its deadline. */
export class OtlpSender {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #query: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #onFault: (fault: string) => void;

  /** `onFault` is called with the reason of a failed export: a status, or the error of the connection. */
  constructor(
    { endpoint, protocol, headers, timeoutMs }: SenderTarget,
    egress: EgressGuard,
    onFault: (fault: string) => void,
  ) {
    const url = new URL(endpoint);
    this.#path = url.pathname.replace(/\/$/, "");
    this.#query = url.search;
    const type = protocol === "http/json" ? "application/json" : "application/x-protobuf";
    this.#headers = { ...headers, "content-type": type };
    this.#timeoutMs = timeoutMs;
    this.#onFault = onFault;
    this.#pool = new Pool(url.origin, { connections, connect: egress.connector(url, timeoutMs) });
  }

  /** Never rejects. */
  async post(path: "/v1/traces" | "/v1/metrics", body: Uint8Array): Promise<Delivery> {
    try {
      const { statusCode, body: answer } = await this.#pool.request({
        path: this.#path + path + this.#query,
        method: "POST",
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      await answer.dump({ limit: maxAnswerBytes });
      if (statusCode >= 200 && statusCode < 300) return "sent";
      this.#onFault(`status ${statusCode}`);
      return passing.has(statusCode) ? "again" : "refused";
    } catch (cause) {
      this.#onFault(faultName(cause));
      return "again";
    }
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** A code such as `ECONNREFUSED`: messages of the network name addresses, and may repeat what was sent. */
function faultName(cause: unknown): string {
  if (!(cause instanceof Error)) return "unknown";
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
}

interface ReporterOptions {
  readonly target: Pick<TelemetryTarget, "protocol" | "timeoutMs" | "metricsIntervalMs">;
  readonly resource: Resource;
  readonly sender: OtlpSender;
  readonly bridge: MetricProducer;
  readonly count: (result: ExportResult) => void;
}

const closeMs = 3_000;

/**
 * Exports metrics periodically. Values are cumulative, so failed exports are not retried. One export runs at a time.
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

  /** Exports once more, for at most 3 s. */
  async close(): Promise<void> {
    await this.#provider.shutdown({ timeoutMillis: closeMs }).catch(() => undefined);
  }
}

function exporterOf(
  protocol: TelemetryTarget["protocol"],
  { sender, count }: Pick<ReporterOptions, "sender" | "count">,
): PushMetricExporter {
  const serializer = protocol === "http/json" ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const exportMetrics = async (metrics: ResourceMetrics): Promise<void> => {
    const body = serializer.serializeRequest(metrics);
    const isSent = body !== undefined && (await sender.post("/v1/metrics", body)) === "sent";
    count(isSent ? "sent" : "failed");
  };
  return {
    // The SDK ignores failed exports; they are counted here.
    export: (metrics, done) => void exportMetrics(metrics).finally(() => done({ code: 0 })),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
}

interface SpanQueueOptions {
  /** Spans that wait for export. */
  readonly maxWaiting: number;
  /** Never rejects. */
  readonly send: (spans: ReadableSpan[]) => Promise<Delivery>;
  readonly count: (result: ExportResult, spans: number) => void;
  readonly random: Random;
  readonly delays?: RetryDelays;
}

/** Spans of one request; serializing them takes the event loop no longer than a call. */
const maxTogether = 256;
/** Time from the first waiting span to its export. */
const gatherMs = 1_000;
const maxAttempts = 4;
const usualDelays: RetryDelays = { firstMs: 1_000, maxMs: 8_000 };

/**
 * Spans waiting for the collector, at most `maxWaiting`; one request runs at a time. Spans beyond the limit, refused ones
 * and those not accepted in four attempts are dropped and counted.
 */
export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  #waiting: ReadableSpan[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #draining: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  onStart(): void {
    // Spans are exported when they end.
  }

  onEnd(span: ReadableSpan): void {
    if (this.#closing.signal.aborted || this.#waiting.length >= this.#options.maxWaiting) {
      this.#options.count("dropped", 1);
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= maxTogether) void this.forceFlush();
    else this.#gathering ??= setTimeout(() => void this.forceFlush(), gatherMs).unref();
  }

  /** Resolves once nothing waits. */
  forceFlush(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
    });
    return this.#draining;
  }

  /** Exports waiting spans for at most 3 s; the rest is dropped. */
  async shutdown(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    const patience = pause(closeMs, undefined);
    await Promise.race([this.forceFlush(), patience.over]);
    patience.end();
    this.#options.count("dropped", this.#waiting.splice(0).length);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxTogether);
      this.#options.count((await this.#deliver(batch)) ? "sent" : "failed", batch.length);
    }
  }

  async #deliver(batch: ReadableSpan[]): Promise<boolean> {
    const { send, random, delays = usualDelays } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const delivery = await send(batch);
      if (delivery !== "again") return delivery === "sent";
      if (attempt === maxAttempts || this.#closing.signal.aborted) return false;
      await pause(retryDelay(attempt, 0, delays, random), this.#closing.signal).over;
    }
  }
}

/** A time that keeps no process alive, and is over early where `signal` aborts. */
function pause(ms: number, signal: AbortSignal | undefined): { readonly over: Promise<void>; end(): void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms).unref();
    end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal?.addEventListener("abort", end, { once: true });
  });
  return { over: over.finally(() => signal?.removeEventListener("abort", end)), end };
}
