import type { Context } from "koa";
import { decisions } from "../action/decision.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import type { Operations, QueryParameter } from "../operation/operation.ts";
import { type AskedBy, choice, paging, sessionId } from "../operation/request.ts";
import {
  answers,
  anyObject,
  anyText,
  constant,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  page,
  ref,
  time,
} from "../operation/shape.ts";
import { parseRedactions } from "./bundle/build.ts";
import type { ExportRequest, SessionExport } from "./bundle/session-export.ts";
import type { ChainStatus } from "./chain/chain-table.ts";
import type { Ledger } from "./ledger.ts";
import type { Disclosure } from "./private/disclosure.ts";
import { actionKinds, type EvidenceRecord, effects, eventKinds, recordSchema } from "./record/record.ts";
import { isAction } from "./record/record-text.ts";
import { renderHtml, reportPolicy } from "./report/html.ts";
import { renderMarkdown } from "./report/markdown.ts";
import { buildReport } from "./report/model.ts";

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
          verdict: oneOf(["consistent", "behind", "forked", "unreadable", "no_record", "unreachable"]),
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

/**
 * Answers the bundle of one session; `?redact=<seq>.<member>.<field>`, repeated, withholds fields. A caller who may not
 * see private fields gets it with all of them withheld.
 */
export async function sendBundle(
  exporter: SessionExport,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.export">,
): Promise<void> {
  const request = requestOf(asked, caller);
  const bundle = await exporter.bundle(caller.tenant, request);
  ctx.set("content-disposition", `attachment; filename="evidence-${request.session}.jsonl"`);
  ctx.type = "application/jsonl";
  ctx.body = bundle;
}

/** Answers the report of one session as `?format=` `json` (unless told), `md` or `html`. */
export async function sendReport(
  exporter: SessionExport,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.report">,
): Promise<void> {
  const { format } = asked.query;
  const report = buildReport(await exporter.collect(caller.tenant, "evidence.report", requestOf(asked, caller)));
  if (format === "json") {
    ctx.body = report;
    return;
  }
  ctx.type = format === "md" ? "text/markdown; charset=utf-8" : "text/html; charset=utf-8";
  ctx.set("content-security-policy", `${reportPolicy}; frame-ancestors 'none'`);
  ctx.body = format === "md" ? renderMarkdown(report) : renderHtml(report);
}

function requestOf({ id, query }: AskedBy<"admin.export">, caller: Principal): ExportRequest {
  return {
    session: id,
    by: caller.id,
    disclose: can(caller.role, "evidence.disclose"),
    redact: parseRedactions(query.redact),
  };
}

/** A record with what is kept of the arguments or the answer it commits to. */
type DisclosedRecord = EvidenceRecord & { readonly disclosed: Disclosure };

/** A page ends early, with the record whose values go beyond this many characters. */
const maxDisclosed = 16_777_216;

/**
 * Answers the records of one session; with `?disclose=true`, each with its private fields as far as they are kept.
 * Throws ROLE_FORBIDDEN where the caller may not read those.
 */
export async function showSession(
  ledger: Ledger,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.session">,
): Promise<void> {
  const {
    id: session,
    query: { disclose, ...page },
  } = asked;
  if (disclose && !can(caller.role, "evidence.disclose")) {
    throw new GatewayError("ROLE_FORBIDDEN", `\`${caller.role}\` lacks \`evidence.disclose\``);
  }
  const { items, next } = await ledger.records(caller.tenant, session, page);
  if (!disclose) {
    ctx.body = { items, next };
    return;
  }
  // Before anything is read: what was looked at is known even if the answer never arrives.
  await ledger.recordEvent(caller.tenant, "admin", { action: "evidence.disclose", principal: caller.id, session });
  const disclosed = await discloseSome(ledger, items);
  const cut = items[disclosed.length];
  ctx.body = { items: disclosed, next: cut === undefined ? next : String(indexOf(cut)) };
}

async function discloseSome(ledger: Ledger, records: readonly EvidenceRecord[]): Promise<readonly DisclosedRecord[]> {
  const items: DisclosedRecord[] = [];
  let size = 0;
  for (const record of records) {
    if (size > maxDisclosed) break;
    const disclosed = isAction(record) ? await ledger.disclosure(record) : {};
    size += JSON.stringify(disclosed).length;
    items.push({ ...record, disclosed });
  }
  return items;
}

function indexOf(record: EvidenceRecord): number {
  if ("session" in record) return record.session.index;
  throw new TypeError("showSession: expected the records of a session");
}

/** How a tenant's evidence stands, in as few words as an overview has room for. */
interface EvidenceStanding {
  /** Whether anything can be recorded, of any tenant. */
  readonly writable: boolean;
  /** −1 where nothing is recorded yet. */
  readonly seq: number;
  readonly state: ChainStatus["state"] | "none";
}

export function evidenceStanding(ledger: Pick<Ledger, "status" | "writable">, tenant: string): EvidenceStanding {
  const chain = ledger.status().find((each) => each.tenant === tenant);
  return { writable: ledger.writable, seq: chain?.seq ?? -1, state: chain?.state ?? "none" };
}
