import type { Static } from "@sinclair/typebox";
import { type Draft, withDefaults } from "./check.ts";
import { consoleSchema } from "./console-schema.ts";
import { effectsSchema } from "./effect-schema.ts";
import { modelGatewaySchema, providerSchema, upstreamSchema, usageSchema } from "./peer-schema.ts";
import {
  approvalsSchema,
  evidenceSchema,
  extensionsSchema,
  hooksSchema,
  policySchema,
  sessionsSchema,
  ticketsSchema,
} from "./policy-schema.ts";
import { list, object } from "./schema.ts";
import {
  egressSchema,
  keysSchema,
  limitsSchema,
  listenSchema,
  logSchema,
  mcpGatewaySchema,
  oauthSchema,
  telemetrySchema,
} from "./server-schema.ts";
import { dataDirSchema, reportsSchema, resilienceSchema, stateSchema, storeSchema } from "./store-schema.ts";

/** Every key of `gateway.yaml`. Rules across keys are in `rule.ts`. */
export const fileSchema = object("The gateway's configuration.", {
  listen: listenSchema,
  egress: egressSchema,
  data_dir: dataDirSchema,
  state: stateSchema,
  store: storeSchema,
  keys: keysSchema,
  mcp_gateway: mcpGatewaySchema,
  oauth: oauthSchema,
  console: consoleSchema,
  upstreams: list("The MCP servers behind the gateway.", upstreamSchema, { default: [] }),
  effects: effectsSchema,
  providers: list("The model providers behind the gateway. Left out: `mock`.", providerSchema, {
    default: [withDefaults(providerSchema, { name: "mock", type: "mock", models: ["mock"] })],
    whenEmpty: "leave the key out to have the mock provider alone",
  }),
  model_gateway: modelGatewaySchema,
  usage: usageSchema,
  policy: policySchema,
  extensions: extensionsSchema,
  sessions: sessionsSchema,
  tickets: ticketsSchema,
  evidence: evidenceSchema,
  approvals: approvalsSchema,
  hooks: hooksSchema,
  resilience: resilienceSchema,
  reports: reportsSchema,
  telemetry: telemetrySchema,
  limits: limitsSchema,
  log: logSchema,
});

/** The checked file in its own spelling, every default filled in. */
export type FileForm = Static<typeof fileSchema>;
/** The file as checked so far: what is undefined was a fault. */
export type FileDraft = NonNullable<Draft<FileForm>>;

export type UpstreamForm = FileForm["upstreams"][number];
export type ProviderForm = FileForm["providers"][number];
export type RouteForm = FileForm["model_gateway"]["routes"][number];
export type WebhookForm = FileForm["approvals"]["webhooks"][number];
export type WitnessForm = FileForm["evidence"]["witnesses"][number];
