/** A collector of traces and metrics, and how it is told. */
export interface TelemetryTarget {
  /** Null: nobody is told. */
  readonly endpoint: string | null;
  readonly protocol: "http/protobuf" | "http/json";
  /** Values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of one request to it. */
  readonly timeoutMs: number;
  /** Of a hundred requests, how many are traced. */
  readonly samplePercent: number;
  /** Spans that wait. */
  readonly mostQueuedSpans: number;
  /** 0: no metrics are told. */
  readonly metricsIntervalMs: number;
}
