export const telemetrySchema = {
  type: "object",
  description: "OpenTelemetry: traces and metrics for a collector. Off until an endpoint is given.",
  fields: {
    endpoint: {
      type: "string",
      format: "url",
      default: null,
      description:
        "Where an OTLP collector listens for HTTP, such as `http://127.0.0.1:4318`: told at `/v1/traces` and `/v1/metrics` below it. Left out: nothing is traced, and nobody told. No `OTEL_` variable is read.",
    },
    protocol: {
      type: "choice",
      values: ["http/protobuf", "http/json"],
      default: "http/protobuf",
      description: "How it is told.",
    },
    headers_env: {
      type: "map",
      key: "header_name",
      default: {},
      description: "Headers for the collector, whose values are secret.",
      of: {
        type: "string",
        format: "variable",
        required: true,
        description: "Environment variable that holds the value, whole: `Bearer …` and all.",
      },
    },
    timeout_ms: {
      type: "integer",
      min: 100,
      max: 60_000,
      default: 10_000,
      description: "The longest one request to the collector may take.",
    },
    sample_percent: {
      type: "integer",
      min: 0,
      max: 100,
      default: 100,
      description: "How many of a hundred requests are traced. Chance decides, never the client.",
    },
    max_queued_spans: {
      type: "integer",
      min: 512,
      max: 1_000_000,
      default: 8_192,
      description: "Spans that wait for the collector. What comes beyond is dropped, and counted.",
    },
    metrics_interval_ms: {
      type: "integer",
      min: 0,
      max: 3_600_000,
      default: 60_000,
      description: "Time from one report of the metrics to the next, at least 1000. 0: none are reported.",
    },
    exemplars: {
      type: "boolean",
      default: false,
      description:
        "Name in `/metrics` the latest trace of each bucket of the durations of policy and dispatch, to scrapers that ask for OpenMetrics. True needs `endpoint`.",
    },
  },
} as const;
