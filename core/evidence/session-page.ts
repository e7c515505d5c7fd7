import { GatewayError } from "../kernel/error.ts";
import { isFault } from "./fault.ts";
import {
  type EvidenceStore,
  recordKey,
  seqIn,
  sessionKey,
  sessionOrderKey,
  sessionOrderRange,
  sessionRecordKey,
  sessionRecordRange,
} from "./key-space.ts";
import { readFirstKept } from "./pruned-prefix.ts";
import type { EvidenceRecord } from "./record.ts";
import { isAction, readRecord } from "./record-text.ts";
import { readSummary, type SessionSummary } from "./session-head.ts";

export interface PageRequest {
  /** 1 to 1,000. */
  readonly limit: number;
  /** The `next` of the page before. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

const largestPage = 1_000;
const longestSession = 256;

/** A tenant's sessions, the one that began last first; pruned ones leave pages shorter. Throws INVALID_PARAMS for a bad page. */
export async function listSessions(
  store: EvidenceStore,
  tenant: string,
  page: PageRequest,
): Promise<Page<SessionSummary>> {
  const limit = checkLimit(page.limit);
  const before = readCursor(page.cursor);
  const range = sessionOrderRange(tenant);
  const lt = before === undefined ? range.lt : sessionOrderKey(tenant, before);
  const ids = await store.values({ gte: range.gte, lt, reverse: true, limit: limit + 1 }).all();
  const texts = await store.getMany(ids.slice(0, limit).map((id) => sessionKey(tenant, id)));
  const found = texts.map((text) => {
    const summary = readSummary(text ?? "");
    if (summary === undefined) throw mismatch(tenant);
    return summary;
  });
  const next = ids.length > limit ? String(found.at(-1)?.first_seq) : null;
  const firstKept = await readFirstKept(store, tenant);
  return { items: found.filter((summary) => summary.last_seq >= firstKept), next };
}

/**
 * The records of one session, oldest first, but for pruned ones.
 * Throws NOT_FOUND for a session this tenant does not have, INVALID_PARAMS for a bad page, EVIDENCE_UNAVAILABLE where
 * the index and the chain disagree: a gap is never shown as if nothing were missing.
 */
export async function listRecords(
  store: EvidenceStore,
  tenant: string,
  session: string,
  page: PageRequest,
): Promise<Page<EvidenceRecord>> {
  const limit = checkLimit(page.limit);
  const cursor = readCursor(page.cursor) ?? 0;
  const total = await countRecords(store, tenant, session);
  const from = Math.max(cursor, await findFirstIndex(store, tenant, session));
  const end = Math.min(from + limit, total);
  if (from >= end) return { items: [], next: null };
  const range = { gte: sessionRecordKey(tenant, session, from), lt: sessionRecordRange(tenant, session).lt };
  const seqs = await store.values({ ...range, limit: end - from }).all();
  const texts = await store.getMany(seqs.map((seq) => recordKey(tenant, Number(seq))));
  if (texts.length !== end - from) throw mismatch(tenant);
  const items = texts.map((text, offset) => readEntry(text, tenant, session, from + offset));
  return { items, next: end < total ? String(end) : null };
}

/** How many records a session has had. Throws NOT_FOUND for one this tenant does not have, or not any more. */
export async function countRecords(store: EvidenceStore, tenant: string, session: string): Promise<number> {
  const known = session.length <= longestSession && session.isWellFormed();
  const text = known ? await store.get(sessionKey(tenant, session)) : undefined;
  if (text === undefined) throw notFound();
  const summary = readSummary(text);
  if (summary === undefined) throw mismatch(tenant);
  if (summary.last_seq < (await readFirstKept(store, tenant))) throw notFound();
  return summary.records;
}

/** The index of the first record of a session that was not pruned. */
async function findFirstIndex(store: EvidenceStore, tenant: string, session: string): Promise<number> {
  const firstKept = await readFirstKept(store, tenant);
  if (firstKept === 0) return 0;
  for await (const [key, seq] of store.iterator(sessionRecordRange(tenant, session))) {
    if (Number(seq) >= firstKept) return seqIn(key);
  }
  throw mismatch(tenant);
}

function readEntry(text: string | undefined, tenant: string, session: string, index: number): EvidenceRecord {
  const record = text === undefined ? undefined : readRecord(text);
  if (record === undefined || isFault(record) || !isAction(record) || record.tenant !== tenant) throw mismatch(tenant);
  if (record.session.id !== session || record.session.index !== index) throw mismatch(tenant);
  return record;
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= largestPage) return limit;
  throw new GatewayError("INVALID_PARAMS", `expected \`limit\` from 1 to ${largestPage}, got \`${limit}\``);
}

function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new GatewayError("INVALID_PARAMS", `expected \`cursor\` to be the \`next\` of a page`);
}

function notFound(): GatewayError {
  return new GatewayError("NOT_FOUND", "no such session");
}

function mismatch(tenant: string): GatewayError {
  return new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `sessions of tenant \`${tenant}\` do not match its chain; verify the chain`,
  );
}
