import type { TObject, TSchema } from "@sinclair/typebox";
import { decisions } from "../action/decision.ts";
import type { ErrorCode } from "../action/error.ts";
import { Type } from "../config/type.ts";
import { type AdminOperations, type OperationResponse, smallBody } from "../operation/operation.ts";
import {
  anyObject,
  anyText,
  boundedText,
  closed,
  enumOf,
  jsonResponse,
  matching,
  nonBlankText,
  nullable,
  page,
  paging,
  queryChoice,
  ref,
  sessionParameter,
  time,
  whole,
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
    pattern: "^\\d{1,15}\\.(?:arguments|output|facts)\\.[^\\n]{0,512}$",
    description: "`<seq>.<arguments|output|facts>.<field>`",
  }),
  {
    maxItems: 1_000,
    default: [],
    description:
      "fields to withhold, each as `<seq>.<arguments|output|facts>.<field>`; with an argument go the facts of its action",
  },
);

const jobErrors: readonly ErrorCode[] = ["EVIDENCE_BUSY", "STOPPING", ...unwritable];
const reason = nonBlankText(1_024, "1 to 1024 characters: why; recorded");
const pastTime = matching(
  "^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?(?:[Zz]|[+-]\\d\\d:\\d\\d)$",
  "a past RFC 3339 time: records of this time and later stay",
);
const fields = Type.Array(
  Type.String({
    pattern: "^(?:\\*|(?:arguments|output|facts)\\.[^\\n]{0,256})$",
    description: "`arguments.<name>`, `output.<name>`, `facts.<name>`, with `*` for any characters, or `*`",
  }),
  {
    minItems: 1,
    maxItems: 32,
    description: "1 to 32 patterns of fields: `arguments.<name>`, `output.<name>`, `facts.<name>` or `*`",
  },
);

function jobResponse(description: string): OperationResponse {
  return { status: 202, description, content: { "application/json": ref("EvidenceJob") } };
}

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
    isReading: true,
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
    isReading: true,
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
  pruneEvidence: {
    id: "admin.prune",
    method: "POST",
    path: "/admin/v1/evidence/prune",
    access: "evidence.prune",
    tag: "evidence",
    summary: "Start to delete the tenant's records before a time, while the gateway serves; the rest still verifies",
    body: {
      schema: closed({ before: pastTime, reason: Type.Optional(reason) }),
      example: { before: "2026-01-31T00:00:00Z", reason: "retention of a year" },
      required: true,
      limits: smallBody,
    },
    response: jobResponse("The job that was started."),
    errors: jobErrors,
  },
  eraseEvidence: {
    id: "admin.erase",
    method: "POST",
    path: "/admin/v1/evidence/erase",
    access: "evidence.erase",
    tag: "evidence",
    summary: "Start to erase stored arguments and outputs permanently; records, proofs and checkpoints stay valid",
    body: {
      schema: closed({
        session: Type.Optional(
          boundedText(1, 256, "a session as paths name it, in every record of which fields are erased"),
        ),
        seq: Type.Optional(Type.Integer({ minimum: 0, description: "the number of the only record" })),
        fields,
        reason,
      }),
      example: { seq: 12, fields: ["arguments.email"], reason: "request 42" },
      required: true,
      limits: smallBody,
    },
    response: jobResponse("The job that was started."),
    errors: ["NOT_FOUND", ...jobErrors],
    subjectMember: "session",
    sessionMember: "session",
  },
  listEvidenceJobs: {
    id: "admin.evidence_jobs",
    method: "GET",
    path: "/admin/v1/evidence/jobs",
    access: "evidence.read",
    tag: "evidence",
    summary: "List the tenant's latest prunes and erasures since the gateway started, newest first",
    response: jsonResponse("The jobs, at most five.", whole(ref("EvidenceJob"))),
    errors: [],
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

const job: TObject = Type.Object({
  id: anyText,
  tenant: anyText,
  kind: enumOf(["prune", "erase"]),
  state: enumOf(["waiting", "running", "complete", "failed"]),
  by: anyText,
  begun_at: time,
  verified: { ...wholeNumber, description: "records of the chain that were verified so far" },
  deleted: { ...wholeNumber, description: "records that were deleted so far" },
  result: nullable(
    Type.Union([
      Type.Object({ before: time, records: wholeNumber, first_kept: wholeNumber, first_younger: wholeNumber }),
      Type.Object({ fields: wholeNumber, seqs: Type.Array(wholeNumber) }),
    ]),
  ),
  fault: nullable(anyText),
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
  EvidenceJob: job,
  Verification: verification,
};
