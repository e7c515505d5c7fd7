import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { decisions } from "../action/decision.ts";
import type { ErrorCode } from "../action/error.ts";
import type { AdminOperations } from "../operation/operation.ts";
import {
  anyObject,
  anyText,
  closed,
  enumOf,
  jsonResponse,
  nullable,
  page,
  paging,
  queryChoice,
  ref,
  sessionParameter,
  time,
  wholeNumber,
} from "../operation/shape.ts";
import { actionKinds, effects, eventKinds, recordSchema } from "./record/record.ts";

const params = { id: sessionParameter };
const unwritable: readonly ErrorCode[] = ["EVIDENCE_UNAVAILABLE"];
const exportErrors: readonly ErrorCode[] = ["EXPORT_BOUND", "EVIDENCE_UNAVAILABLE"];

const disclose = Type.Boolean({
  default: false,
  description: "`true` or `false`: whether private fields come with the records",
});

const redact = Type.Array(
  Type.String({
    pattern: "^\\d{1,15}\\.(?:arguments|output)\\.[^\\n]{0,512}$",
    description: "`<seq>.<arguments|output>.<field>`",
  }),
  {
    maxItems: 1_000,
    default: [],
    description: "fields to withhold, each as `<seq>.<arguments|output>.<field>`",
  },
);

/** Recorded evidence and its verification. */
export const evidenceOperations = {
  listEvidenceSessions: {
    id: "admin.sessions",
    method: "GET",
    path: "/admin/v1/evidence/sessions",
    access: "evidence.read",
    tag: "evidence",
    summary: "List recorded sessions, newest first",
    query: closed(paging),
    response: jsonResponse("A page of sessions.", page(ref("EvidenceSession"))),
    errors: unwritable,
  },
  listRecords: {
    id: "admin.session",
    method: "GET",
    path: "/admin/v1/evidence/sessions/:id",
    access: "evidence.read",
    tag: "evidence",
    summary: "List the records of one session in order; disclosing private fields is itself recorded",
    params,
    query: closed({ ...paging, disclose }),
    response: jsonResponse("A page of records.", page(ref("EvidenceRecord"))),
    errors: ["ROLE_FORBIDDEN", ...unwritable],
  },
  exportSession: {
    id: "admin.export",
    method: "GET",
    path: "/admin/v1/evidence/sessions/:id/export",
    access: "evidence.read",
    tag: "evidence",
    summary: "Export one session as a signed bundle that `gateway evidence verify` checks offline",
    params,
    query: closed({ redact }),
    repeated: ["redact"],
    response: { status: 200, description: "The bundle, JSON Lines.", content: { "application/jsonl": null } },
    errors: exportErrors,
  },
  reportSession: {
    id: "admin.report",
    method: "GET",
    path: "/admin/v1/evidence/sessions/:id/report",
    access: "evidence.read",
    tag: "evidence",
    summary: "Report one session: requests, decisions with their rules, and outcomes",
    params,
    query: closed({ format: queryChoice(["json", "md", "html"], "json"), redact }),
    repeated: ["redact"],
    response: {
      status: 200,
      description: "The report in the requested format.",
      content: { "application/json": ref("EvidenceReport"), "text/markdown": null, "text/html": null },
    },
    errors: exportErrors,
  },
  verifyAudit: {
    id: "admin.verify",
    method: "POST",
    path: "/admin/v1/audit/verify",
    access: "evidence.verify",
    tag: "evidence",
    summary: "Verify the tenant's chain from its first record",
    response: jsonResponse("The result.", ref("Verification")),
    errors: unwritable,
  },
  verifyEvidence: {
    id: "admin.evidence_verify",
    method: "POST",
    path: "/admin/v1/evidence/verify",
    access: "evidence.verify",
    tag: "evidence",
    summary: "Verify the tenant's chain, and compare it with every witness",
    response: jsonResponse("The result.", ref("Verification")),
    errors: unwritable,
  },
  getCheckpoint: {
    id: "admin.checkpoint",
    method: "GET",
    path: "/admin/v1/evidence/checkpoint",
    access: "evidence.read",
    tag: "evidence",
    summary: "Get the latest signed checkpoint of the chain, and the keys that sign it",
    response: jsonResponse("A signed note.", Type.Object({ note: anyText, keys: Type.Array(ref("EvidenceKey")) })),
    errors: ["NOT_FOUND", ...unwritable],
  },
  listEvidenceKeys: {
    id: "admin.keys",
    method: "GET",
    path: "/admin/v1/evidence/keys",
    access: "evidence.read",
    tag: "evidence",
    summary: "List the keys of the tenant's chain, oldest first",
    response: jsonResponse(
      "The keys.",
      Type.Object({ tenant: anyText, chain: anyText, keys: Type.Array(ref("EvidenceKey")) }),
    ),
    errors: ["NOT_FOUND", ...unwritable],
  },
  rotateEvidenceKey: {
    id: "admin.rotate",
    method: "POST",
    path: "/admin/v1/evidence/keys/rotate",
    access: "evidence.rotate",
    tag: "evidence",
    summary: "Rotate the key that signs the chain",
    response: jsonResponse("The id of the new key.", Type.Object({ tenant: anyText, key_id: anyText })),
    errors: ["NOT_FOUND", ...unwritable],
  },
} as const satisfies AdminOperations;

const frame = {
  chain: anyText,
  config_digest: anyText,
  id: anyText,
  kind: enumOf([...actionKinds, ...eventKinds]),
  prev_hash: anyText,
  salt: anyText,
  schema: Type.Literal(recordSchema),
  seq: wholeNumber,
  tenant: anyText,
  time,
  writer: Type.Object({ epoch: wholeNumber, id: anyText }),
};

const content = Type.Partial(
  Type.Object({
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
    disclosed: { ...anyObject, description: "the private fields that are kept, where they were asked for" },
  }),
);

const record: TObject = Type.Object(
  { ...frame, ...content.properties },
  { description: "A leaf of the tenant's chain. Its bytes are its RFC 8785 JSON without `disclosed`." },
);

const session: TObject = Type.Object({
  id: anyText,
  transport: enumOf(["http", "sse"]),
  label: Type.Optional(anyText),
  principal: anyText,
  started_at: time,
  last_at: time,
  first_seq: wholeNumber,
  last_seq: wholeNumber,
  records: wholeNumber,
  allow: wholeNumber,
  review: wholeNumber,
  block: wholeNumber,
});

const witness: TObject = Type.Object({
  witness: anyText,
  verdict: enumOf(["consistent", "behind", "forked", "unreadable", "no_record", "unreachable"]),
  size: Type.Optional(wholeNumber),
});

const verification: TObject = Type.Object({
  ok: Type.Boolean(),
  tenant: anyText,
  records: wholeNumber,
  head: nullable(Type.Object({ seq: Type.Integer({ minimum: -1 }), hash: anyText })),
  firstBad: Type.Optional(Type.Object({ seq: wholeNumber, reason: anyText, detail: anyText })),
  refused: Type.Optional(anyText),
  firstKept: Type.Optional(wholeNumber),
  witnesses: Type.Optional(Type.Array(witness)),
});

const key: TObject = Type.Object({
  key_id: anyText,
  public_key: anyText,
  from_size: wholeNumber,
  to_size: nullable(wholeNumber),
});

const report: TObject = Type.Object({
  schema: Type.Literal("evidence-report-v1"),
  tenant: anyText,
  chain: anyText,
  session: anyText,
  label: nullable(anyText),
  created: time,
  checkpoint: Type.Object({ size: wholeNumber, head: anyText, time, key_id: anyText }),
  pruned_records: wholeNumber,
  summary: Type.Object({
    actions: wholeNumber,
    allow: wholeNumber,
    review: wholeNumber,
    block: wholeNumber,
    success: wholeNumber,
    error: wholeNumber,
    unknown: wholeNumber,
    open: wholeNumber,
  }),
  extensions: Type.Array(anyObject),
  actions: Type.Array(anyObject),
  events: Type.Array(Type.Object({ seq: wholeNumber, time, kind: anyText, detail: anyObject })),
});

/** Components of the document. */
export const evidenceSchemas: Readonly<Record<string, TSchema>> = {
  Decision: enumOf(decisions),
  Effect: enumOf(effects),
  EvidenceRecord: record,
  EvidenceSession: session,
  EvidenceReport: report,
  EvidenceKey: key,
  Verification: verification,
};
