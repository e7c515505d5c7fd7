import { keysSchema, listenSchema, mcpGatewaySchema } from "./access-schema.ts";
import { approvalSchema } from "./approval-schema.ts";
import { evidenceSchema } from "./evidence-schema.ts";
import { extensionsSchema } from "./extension-schema.ts";
import type { Field, Form, ObjectField } from "./field.ts";
import { dataDirSchema, limitsSchema, logSchema, policySchema, sessionsSchema, stateSchema } from "./runtime-schema.ts";
import { upstreamSchema } from "./upstream-schema.ts";

/** The file as checked: its own spelling, every default filled in. */
export interface FileForm {
  readonly listen: Form<typeof listenSchema>;
  readonly data_dir: Form<typeof dataDirSchema>;
  readonly state: Form<typeof stateSchema>;
  readonly keys: Form<typeof keysSchema>;
  readonly mcp_gateway: Form<typeof mcpGatewaySchema>;
  readonly upstreams: readonly UpstreamForm[];
  readonly policy: Form<typeof policySchema>;
  readonly extensions: Form<typeof extensionsSchema>;
  readonly sessions: Form<typeof sessionsSchema>;
  readonly evidence: Form<typeof evidenceSchema>;
  readonly approvals: Form<typeof approvalSchema>;
  readonly limits: Form<typeof limitsSchema>;
  readonly log: Form<typeof logSchema>;
}

export type UpstreamForm = Form<typeof upstreamSchema>;
export type WebhookForm = FileForm["approvals"]["webhooks"][number];
export type WitnessForm = FileForm["evidence"]["witnesses"][number];

const fields: Readonly<Record<keyof FileForm, Field>> = {
  listen: listenSchema,
  data_dir: dataDirSchema,
  state: stateSchema,
  keys: keysSchema,
  mcp_gateway: mcpGatewaySchema,
  upstreams: { type: "list", default: [], description: "The MCP servers behind the gateway.", of: upstreamSchema },
  policy: policySchema,
  extensions: extensionsSchema,
  sessions: sessionsSchema,
  evidence: evidenceSchema,
  approvals: approvalSchema,
  limits: limitsSchema,
  log: logSchema,
};

/** Every key of the file. What it does not say is decided across fields, in `rule.ts`. */
export const fileSchema: ObjectField = {
  type: "object",
  description: "The gateway's configuration.",
  fields,
};
