import { GatewayError } from "../action/error.ts";
import { readPastTime } from "../action/past-time.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import { type AdminHandlers, checkAccess, replyWith } from "../operation/operation.ts";
import type { PageQuery } from "../operation/shape.ts";
import { parseRedactions } from "./bundle/build.ts";
import type { ExportRequest, SessionExport } from "./bundle/session-export.ts";
import type { ChainStatus } from "./chain/chain-table.ts";
import type { EvidenceJobs } from "./evidence-jobs.ts";
import type { Ledger } from "./ledger.ts";
import type { evidenceOperations } from "./operation.ts";
import type { Disclosure } from "./private/private-field.ts";
import type { EvidenceRecord } from "./record/record.ts";
import { isAction } from "./record/record-text.ts";
import { renderHtml, reportPolicy } from "./report/html.ts";
import { renderMarkdown } from "./report/markdown.ts";
import { buildReport } from "./report/model.ts";
import type { ErasureRequest } from "./retention/erasure.ts";
import type { WitnessPublisher } from "./witness/witness-publisher.ts";

interface EvidenceSources {
  readonly ledger: Ledger;
  readonly witnessPublisher: WitnessPublisher;
  readonly exporter: SessionExport;
  readonly evidenceJobs: EvidenceJobs;
}

/** Handlers of recorded evidence. Responses are of the caller's tenant only. */
export function evidenceHandlers({
  ledger,
  witnessPublisher,
  exporter,
  evidenceJobs,
}: EvidenceSources): AdminHandlers<typeof evidenceOperations> {
  /** Records the caller. A chain that is not sound accepts no record: then the response alone says so. */
  const recordVerification = ({ tenant, id }: Principal, action: string): Promise<void> =>
    ledger.recordEvent(tenant, "admin", { action, principal: id, ok: true });

  return {
    listEvidenceSessions: ({ tenant }, { query }) => ledger.sessions(tenant, query),
    listRecords: (caller, { id, query }) => listRecords(ledger, caller, id, query),
    exportSession: async (caller, { id, query }) => {
      const bundle = await exporter.bundle(caller.tenant, exportRequest(caller, id, query.redact));
      const headers = { "content-disposition": `attachment; filename="evidence-${id}.jsonl"` };
      return replyWith(bundle, { type: "application/jsonl", headers });
    },
    reportSession: async (caller, { id, query: { format, redact } }) => {
      const request = exportRequest(caller, id, redact);
      const report = buildReport(await exporter.collect(caller.tenant, "evidence.report", request));
      if (format === "json") return report;
      const headers = { "content-security-policy": `${reportPolicy}; frame-ancestors 'none'` };
      return format === "md"
        ? replyWith(renderMarkdown(report), { type: "text/markdown; charset=utf-8", headers })
        : replyWith(renderHtml(report), { type: "text/html; charset=utf-8", headers });
    },
    verifyAudit: async (caller) => {
      const report = await ledger.verify(caller.tenant, await evidenceJobs.beginWatch());
      if (report.ok) await recordVerification(caller, "audit.verify");
      return report;
    },
    verifyEvidence: async (caller) => {
      const report = await ledger.verify(caller.tenant, await evidenceJobs.beginWatch());
      const witnesses = await witnessPublisher.ask(caller.tenant);
      // A witness that contradicts the chain is believed.
      const contradicted = witnesses.some(({ verdict }) => verdict === "behind" || verdict === "forked");
      const ok = report.ok && !contradicted;
      if (ok) await recordVerification(caller, "evidence.verify");
      return { ...report, ok, witnesses };
    },
    getCheckpoint: ({ tenant }) => witnessPublisher.checkpoint(tenant),
    listEvidenceKeys: ({ tenant }) => witnessPublisher.keys(tenant),
    rotateEvidenceKey: async ({ tenant, id: principal }) => ({
      tenant,
      key_id: await ledger.rotateKey(tenant, { action: "evidence.rotate", principal }),
    }),
    pruneEvidence: ({ tenant, id }, { body: { before, reason } }) =>
      evidenceJobs.begin(tenant, id, { kind: "prune", before: checkPastTime(before), reason }),
    eraseEvidence: ({ tenant, id }, { body: { session, seq, fields, reason } }) =>
      evidenceJobs.begin(tenant, id, { kind: "erase", of: checkErased(session, seq), fields, reason }),
    listEvidenceJobs: ({ tenant }) => ({ items: evidenceJobs.list(tenant), next: null }),
  };
}

function checkPastTime(text: string): string {
  const refuse = (expected: string): never => {
    throw new GatewayError("INVALID_PARAMS", `expected \`before\` to be ${expected}, got \`${text}\``);
  };
  return readPastTime(text, Date.now(), () => refuse("past")) ?? refuse("an RFC 3339 time: 2026-01-31T00:00:00Z");
}

function checkErased(session: string | undefined, seq: number | undefined): ErasureRequest["of"] {
  if (session !== undefined && seq === undefined) return { session };
  if (seq !== undefined && session === undefined) return { seq };
  throw new GatewayError("INVALID_PARAMS", "expected one of `session` and `seq`");
}

/** A caller who may not read private fields gets a bundle with all of them withheld. */
function exportRequest({ id: by, role }: Principal, session: string, redact: readonly string[]): ExportRequest {
  return { session, by, disclose: can(role, "evidence.disclose"), redact: parseRedactions(redact) };
}

/** A record with what is kept of the arguments or the output it commits to. */
type DisclosedRecord = EvidenceRecord & { readonly disclosed: Disclosure };

/** A page ends early, with the record whose values exceed this many characters. */
const maxDisclosed = 16_777_216;

/**
 * Returns the records of one session, with `disclose` each with its private fields as far as they are kept. Throws
 * ROLE_FORBIDDEN where the caller may not read those.
 */
async function listRecords(
  ledger: Ledger,
  caller: Principal,
  session: string,
  { disclose, ...page }: PageQuery & { readonly disclose: boolean },
): Promise<object> {
  if (disclose) checkAccess(caller, "evidence.disclose");
  const { items, next } = await ledger.records(caller.tenant, session, page);
  if (!disclose) return { items, next };
  // Recorded before anything is read: the disclosure is known even if the response never arrives.
  await ledger.recordEvent(caller.tenant, "admin", { action: "evidence.disclose", principal: caller.id, session });
  const disclosed = await discloseSome(ledger, items);
  const cut = items[disclosed.length];
  return { items: disclosed, next: cut === undefined ? next : String(indexOf(cut)) };
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
  throw new TypeError("listRecords: expected the records of a session");
}

/** The state of a tenant's evidence, for overviews. */
interface EvidenceStatus {
  /** False while nothing can be recorded, of any tenant. */
  readonly writable: boolean;
  /** −1 where nothing is recorded yet. */
  readonly seq: number;
  readonly state: ChainStatus["state"] | "none";
}

export function evidenceStatus(ledger: Pick<Ledger, "status" | "writable">, tenant: string): EvidenceStatus {
  const chain = ledger.status().find((each) => each.tenant === tenant);
  return { writable: ledger.writable, seq: chain?.seq ?? -1, state: chain?.state ?? "none" };
}
