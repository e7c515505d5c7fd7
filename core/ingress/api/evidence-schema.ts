import { actionKinds, effects, eventKinds, recordSchema } from "../../evidence/record.ts";
import { decisions } from "../../kernel/decision.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { anyObject, anyText, constant, count, flag, list, nullable, object, oneOf, ref, time } from "./shape.ts";

const frame = {
  chain: anyText,
  config_digest: anyText,
  id: anyText,
  kind: oneOf([...actionKinds, ...eventKinds]),
  prev_hash: anyText,
  salt: anyText,
  schema: constant(recordSchema),
  seq: count,
  tenant: anyText,
  time,
  writer: object({ epoch: count, id: anyText }),
};

const story = {
  action: anyObject,
  approval: anyObject,
  client: anyObject,
  effect: ref("Effect"),
  evaluation: anyObject,
  principal: anyObject,
  reason: anyText,
  session: anyObject,
  ticket: anyObject,
  trace: anyObject,
  detail: anyObject,
  disclosed: { ...anyObject, description: "the private fields as far as they are kept, where they were asked for" },
};

const record = object({ ...frame, ...story }, Object.keys(story), {
  description: "A leaf of the tenant's chain. Its bytes are its RFC 8785 JSON without `disclosed`.",
});

const session = object(
  {
    id: anyText,
    transport: oneOf(["http", "sse"]),
    label: anyText,
    principal: anyText,
    started_at: time,
    last_at: time,
    first_seq: count,
    last_seq: count,
    records: count,
    allow: count,
    review: count,
    block: count,
  },
  ["label"],
);

const verification = object(
  {
    ok: flag,
    tenant: anyText,
    records: count,
    head: nullable(object({ seq: { type: "integer", minimum: -1 }, hash: anyText })),
    firstBad: object({ seq: count, reason: anyText, detail: anyText }),
    refused: anyText,
    firstKept: count,
    witnesses: list(
      object(
        {
          witness: anyText,
          verdict: oneOf(["consistent", "behind", "forked", "unreadable", "silent", "unasked"]),
          size: count,
        },
        ["size"],
      ),
    ),
  },
  ["firstBad", "refused", "firstKept", "witnesses"],
);

const key = object({ key_id: anyText, public_key: anyText, from_size: count, to_size: nullable(count) });

const report = object({
  schema: constant("evidence-report-v1"),
  tenant: anyText,
  chain: anyText,
  session: anyText,
  label: nullable(anyText),
  created: time,
  checkpoint: object({ size: count, head: anyText, time, key_id: anyText }),
  pruned_records: count,
  summary: object({
    actions: count,
    allow: count,
    review: count,
    block: count,
    success: count,
    error: count,
    unknown: count,
    open: count,
  }),
  extensions: list(anyObject),
  actions: list(anyObject),
  events: list(object({ seq: count, time, kind: anyText, detail: anyObject })),
});

/** What the answers about evidence are made of. */
export const evidenceSchemas: Readonly<Record<string, JsonObject>> = {
  Decision: oneOf(decisions),
  Effect: oneOf(effects),
  EvidenceRecord: record,
  EvidenceSession: session,
  EvidenceReport: report,
  EvidenceKey: key,
  Verification: verification,
};
