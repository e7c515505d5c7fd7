import type { ErrorCode } from "../../kernel/error.ts";
import type { Operations, QueryParameter } from "./operation.ts";
import { choice, paging, sessionId } from "./parameter.ts";
import { answers, anyText, list, object, page, ref } from "./shape.ts";

export type EvidenceRouteId =
  | "admin.sessions"
  | "admin.session"
  | "admin.export"
  | "admin.report"
  | "admin.verify"
  | "admin.evidence_verify"
  | "admin.checkpoint"
  | "admin.keys"
  | "admin.rotate";

const params = { id: sessionId };
const unwritable: readonly ErrorCode[] = ["EVIDENCE_UNAVAILABLE"];
const inExport: readonly ErrorCode[] = ["EXPORT_BOUND", "EVIDENCE_UNAVAILABLE"];

const disclose: QueryParameter = {
  schema: {
    type: "boolean",
    default: false,
    description: "`true` or `false`: whether private fields come with the records",
  },
};

const redact: QueryParameter = {
  schema: {
    type: "array",
    maxItems: 1_000,
    default: [],
    items: {
      type: "string",
      pattern: "^\\d{1,15}\\.(?:arguments|output)\\.[^\\n]{0,512}$",
      description: "`<seq>.<arguments|output>.<field>`",
    },
    description: "fields to withhold, each as `<seq>.<arguments|output>.<field>`",
  },
  repeated: true,
};

/** What is on record, and whether it is sound. */
export const evidenceOperations: Operations<EvidenceRouteId> = {
  "admin.sessions": {
    name: "listEvidenceSessions",
    subject: "evidence",
    summary: "The sessions on record, the one that began last first",
    query: paging,
    answer: answers("A page of sessions.", page(ref("EvidenceSession"))),
    refusals: unwritable,
  },
  "admin.session": {
    name: "listRecords",
    subject: "evidence",
    summary: "The records of one session in order; private fields only where they are asked for, which goes on record",
    params,
    query: { ...paging, disclose },
    answer: answers("A page of records.", page(ref("EvidenceRecord"))),
    refusals: ["ROLE_FORBIDDEN", ...unwritable],
  },
  "admin.export": {
    name: "exportSession",
    subject: "evidence",
    summary: "One session as a signed bundle that `gateway evidence verify` checks without the gateway",
    params,
    query: { redact },
    answer: { status: 200, description: "The bundle, JSON Lines.", content: { "application/jsonl": null } },
    refusals: inExport,
  },
  "admin.report": {
    name: "reportSession",
    subject: "evidence",
    summary: "One session as a story: what was asked and decided, by which rule, and what came of it",
    params,
    query: { format: choice(["json", "md", "html"], "json"), redact },
    answer: {
      status: 200,
      description: "The report, in the format that was asked for.",
      content: { "application/json": ref("EvidenceReport"), "text/markdown": null, "text/html": null },
    },
    refusals: inExport,
  },
  "admin.verify": {
    name: "verifyAudit",
    subject: "evidence",
    summary: "Checks the tenant's chain from its first record",
    answer: answers("What was found.", ref("Verification")),
    refusals: unwritable,
  },
  "admin.evidence_verify": {
    name: "verifyEvidence",
    subject: "evidence",
    summary: "The same, and what every witness says of the chain",
    answer: answers("What was found.", ref("Verification")),
    refusals: unwritable,
  },
  "admin.checkpoint": {
    name: "getCheckpoint",
    subject: "evidence",
    summary: "The latest signed statement of the chain's head, and the keys that sign it",
    answer: answers("A signed note.", object({ note: anyText, keys: list(ref("EvidenceKey")) })),
    refusals: ["NOT_FOUND", ...unwritable],
  },
  "admin.keys": {
    name: "listEvidenceKeys",
    subject: "evidence",
    summary: "Every key of the tenant's chain, the first one first",
    answer: answers("The keys.", object({ tenant: anyText, chain: anyText, keys: list(ref("EvidenceKey")) })),
    refusals: ["NOT_FOUND", ...unwritable],
  },
  "admin.rotate": {
    name: "rotateEvidenceKey",
    subject: "evidence",
    summary: "Hands the chain over to a new key",
    answer: answers("The new key's id.", object({ tenant: anyText, key_id: anyText })),
    refusals: ["NOT_FOUND", ...unwritable],
  },
};
