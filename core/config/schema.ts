import { keysSchema, listenSchema, mcpGatewaySchema } from "./access-schema.ts";
import { approvalSchema } from "./approval-schema.ts";
import { evidenceSchema } from "./evidence-schema.ts";
import { extensionsSchema } from "./extension-schema.ts";
import type { Field, Form, ObjectField } from "./field.ts";
import { modelGatewaySchema, providerSchema } from "./provider-schema.ts";
import { resilienceSchema } from "./resilience-schema.ts";
import { dataDirSchema, limitsSchema, logSchema, policySchema, stateSchema } from "./runtime-schema.ts";
import { sessionsSchema } from "./session-schema.ts";
import { telemetrySchema } from "./telemetry-schema.ts";
import { ticketsSchema } from "./ticket-schema.ts";
import { upstreamSchema } from "./upstream-schema.ts";
import { usageSchema } from "./usage-schema.ts";

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
