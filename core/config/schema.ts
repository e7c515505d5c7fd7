import { keysSchema, listenSchema, mcpGatewaySchema } from "./access-schema.ts";
import { extensionsSchema } from "./extension-schema.ts";
import type { Field, Form, ObjectField } from "./field.ts";
import { approvalSchema, evidenceSchema, sessionsSchema } from "./policy-schema.ts";
import { modelGatewaySchema, providerSchema } from "./provider-schema.ts";
import { dataDirSchema, limitsSchema, logSchema, policySchema, stateSchema } from "./runtime-schema.ts";
import { upstreamSchema } from "./upstream-schema.ts";

const resilienceSchema = {
  type: "object",
  description: "Backups of everything that the gateway keeps, its keys left out.",
  fields: {
    enabled: {
      type: "boolean",
      default: false,
      description:
        "Serve `POST /admin/v1/resilience/backup` and `GET /admin/v1/resilience/backups`. True needs `state.enabled`.",
    },
    tenant: {
      type: "string",
      format: "name",
      default: null,
      description:
        "Tenant whose admins make backups, which hold what all tenants have, and whose operators list them. None: the one that all `keys` belong to; nobody where there are several.",
    },
    backup_dir: {
      type: "string",
      format: "path",
      default: "./backups",
      description:
        "Folder of the backups, relative to the configuration file's folder; made with mode 0700. No symbolic link, not open to others, neither inside `data_dir` nor around it.",
    },
    keep: {
      type: "integer",
      min: 1,
      max: 1_000,
      default: 7,
      description: "Backups that stay. Once a further one is complete, the oldest is deleted.",
    },
  },
} as const;

const ticketsSchema = {
  type: "object",
  description:
    "Capability tickets: what operators permit a principal to do ahead of time, where a rule says `require_ticket`.",
  fields: {
    default_ttl_seconds: {
      type: "integer",
      min: 1,
      max: 604_800,
      default: 300,
      description: "How long a ticket lasts unless whoever issues it says otherwise; at most `max_ttl_seconds`.",
    },
    max_ttl_seconds: {
      type: "integer",
      min: 1,
      max: 604_800,
      default: 3_600,
      description: "The longest that a ticket may last.",
    },
    max_live: {
      type: "integer",
      min: 1,
      max: 100_000,
      default: 1_000,
      description: "Tickets of one tenant that have not expired. One more is refused.",
    },
    allow_self_issue: {
      type: "boolean",
      default: false,
      description: "Whether an operator may issue a ticket to their own principal.",
    },
  },
} as const;

const telemetrySchema = {
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

const usageSchema = {
  type: "object",
  description: "What may be asked of models. Tokens are those of input and output together.",
  fields: {
    requests_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000_000,
      default: 120,
      description: "Model requests of one key, refilled evenly. Tool calls do not count.",
    },
    tokens_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000_000,
      default: 200_000,
      description: "Tokens of one key, refilled evenly.",
    },
    budgets: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to have no budgets",
      description: "What tenants and keys may spend. Every budget that counts a request must have room for it.",
      of: {
        type: "object",
        description: "One budget. At least one of its limits must be given.",
        fields: {
          tenant: { type: "string", format: "name", required: true, description: "Whose it is: the tenant of a key." },
          key: {
            type: "string",
            format: "name",
            default: null,
            description: "The id of one key of the tenant. Left out: all of the tenant together.",
          },
          tokens_per_day: {
            type: "integer",
            min: 1,
            max: 1_000_000_000_000,
            default: null,
            description: "Tokens in a day of UTC. Left out: any number.",
          },
          tokens_per_month: {
            type: "integer",
            min: 1,
            max: 1_000_000_000_000,
            default: null,
            description: "Tokens in a month of UTC. Left out: any number.",
          },
        },
      },
    },
  },
} as const;

/** The file as checked: its own spelling, every default filled in. */
export interface FileForm {
  readonly listen: Form<typeof listenSchema>;
  readonly data_dir: Form<typeof dataDirSchema>;
  readonly state: Form<typeof stateSchema>;
  readonly keys: Form<typeof keysSchema>;
  readonly mcp_gateway: Form<typeof mcpGatewaySchema>;
  readonly upstreams: readonly UpstreamForm[];
  readonly providers: readonly ProviderForm[];
  readonly model_gateway: Form<typeof modelGatewaySchema>;
  readonly usage: Form<typeof usageSchema>;
  readonly policy: Form<typeof policySchema>;
  readonly extensions: Form<typeof extensionsSchema>;
  readonly sessions: Form<typeof sessionsSchema>;
  readonly tickets: Form<typeof ticketsSchema>;
  readonly evidence: Form<typeof evidenceSchema>;
  readonly approvals: Form<typeof approvalSchema>;
  readonly resilience: Form<typeof resilienceSchema>;
  readonly telemetry: Form<typeof telemetrySchema>;
  readonly limits: Form<typeof limitsSchema>;
  readonly log: Form<typeof logSchema>;
}

export type UpstreamForm = Form<typeof upstreamSchema>;
export type ProviderForm = Form<typeof providerSchema>;
export type RouteForm = FileForm["model_gateway"]["routes"][number];
export type WebhookForm = FileForm["approvals"]["webhooks"][number];
export type WitnessForm = FileForm["evidence"]["witnesses"][number];

const { fields: provider } = providerSchema;

/** The provider that there is where a file names none. */
const mockProvider: ProviderForm = {
  name: "mock",
  type: "mock",
  enabled: provider.enabled.default,
  base_url: null,
  api_key_env: null,
  models: ["mock"],
  first_byte_timeout_ms: provider.first_byte_timeout_ms.default,
  idle_timeout_ms: provider.idle_timeout_ms.default,
  max_timeout_ms: provider.max_timeout_ms.default,
  max_retries: provider.max_retries.default,
  max_connections: provider.max_connections.default,
  breaker: {
    failures: provider.breaker.fields.failures.default,
    rest_ms: provider.breaker.fields.rest_ms.default,
  },
};

const fields: Readonly<Record<keyof FileForm, Field>> = {
  listen: listenSchema,
  data_dir: dataDirSchema,
  state: stateSchema,
  keys: keysSchema,
  mcp_gateway: mcpGatewaySchema,
  upstreams: { type: "list", default: [], description: "The MCP servers behind the gateway.", of: upstreamSchema },
  providers: {
    type: "list",
    default: [mockProvider],
    whenEmpty: "leave the key out to have the mock provider alone",
    description: "The model providers behind the gateway. Left out: `mock`.",
    of: providerSchema,
  },
  model_gateway: modelGatewaySchema,
  usage: usageSchema,
  policy: policySchema,
  extensions: extensionsSchema,
  sessions: sessionsSchema,
  tickets: ticketsSchema,
  evidence: evidenceSchema,
  approvals: approvalSchema,
  resilience: resilienceSchema,
  telemetry: telemetrySchema,
  limits: limitsSchema,
  log: logSchema,
};

/** Every key of the file. What it does not say is decided across fields, in `rule.ts`. */
export const fileSchema: ObjectField = {
  type: "object",
  description: "The gateway's configuration.",
  fields,
};
