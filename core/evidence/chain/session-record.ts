import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject, parseKept } from "../../action/json.ts";
import type { SessionScope } from "../../action/principal.ts";
import { HeldSnapshot } from "../../store/held-snapshot.ts";
import {
  checkpointKey,
  type EvidenceStore,
  eventRange,
  keyRecordRange,
  recordKey,
  seqIn,
  sessionKey,
  sessionOrderKey,
  sessionOrderRange,
  sessionRecordRange,
} from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import type { ActionRecord, EventKind, EvidenceRecord } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import { type Reader, StoreView } from "../record/store-view.ts";
import { parseCheckpoint } from "../tree/checkpoint.ts";
import { readFirstKept } from "../tree/pruned-prefix.ts";

/** One session in a list of sessions. */
export interface SessionSummary {
  readonly id: string;
  readonly transport: SessionScope["transport"];
  readonly label?: string;
  readonly principal: string;
  readonly started_at: string;
  readonly last_at: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly records: number;
  /** Decisions by their answer. */
  readonly allow: number;
  readonly review: number;
  readonly block: number;
}

export interface PageRequest {
  /** 1 to 1,000. */
  readonly limit: number;
  /** The `next` of the page before. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

const maxPage = 1_000;
const maxSession = 256;

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
  await using held = new HeldSnapshot(store);
  const view = new StoreView(store, held.snapshot);
  const ids = await view.values({ gte: range.gte, lt, reverse: true, limit: limit + 1 });
  const texts = await view.getMany(ids.slice(0, limit).map((id) => sessionKey(tenant, id)));
  const found = texts.map((text) => checkSummary(text ?? "", tenant));
  const next = ids.length > limit ? String(found.at(-1)?.first_seq) : null;
  const firstKept = await readFirstKept(view, tenant);
  return { items: found.filter((summary) => summary.last_seq >= firstKept), next };
}

/**
 * A tenant's sessions whose ids begin with `start`, by their ids, at most `limit`; pruned ones are left out. Throws
 * EVIDENCE_UNAVAILABLE for a summary that this ledger has not written.
 */
export async function findSessions(
  store: EvidenceStore,
  tenant: string,
  start: string,
  limit: number,
): Promise<readonly SessionSummary[]> {
  await using held = new HeldSnapshot(store);
  const view = new StoreView(store, held.snapshot);
  const first = sessionKey(tenant, start);
  const found: SessionSummary[] = [];
  const firstKept = await readFirstKept(view, tenant);
  for await (const [, text] of view.entries({ gte: first, lt: `${first}~` })) {
    const summary = checkSummary(text, tenant);
    if (summary.last_seq >= firstKept && found.push(summary) >= limit) break;
  }
  return found;
}

/** Those of some ids that are sessions of a tenant; pruned ones are left out. Throws as `findSessions` does. */
export async function readSessions(
  store: EvidenceStore,
  tenant: string,
  ids: readonly string[],
): Promise<readonly SessionSummary[]> {
  await using held = new HeldSnapshot(store);
  const view = new StoreView(store, held.snapshot);
  const texts = await view.getMany(ids.map((id) => sessionKey(tenant, id)));
  const found = texts.flatMap((text) => (text === undefined ? [] : [checkSummary(text, tenant)]));
  const firstKept = await readFirstKept(view, tenant);
  return found.filter((summary) => summary.last_seq >= firstKept);
}

function checkSummary(text: string, tenant: string): SessionSummary {
  const summary = parseSessionSummary(text);
  if (summary === undefined) throw mismatch(tenant);
  return summary;
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
  await using held = new HeldSnapshot(store);
  const view = new StoreView(store, held.snapshot);
  const total = await countRecords(view, tenant, session);
  const from = Math.max(cursor, await findFirstIndex(view, tenant, session));
  const end = Math.min(from + limit, total);
  if (from >= end) return { items: [], next: null };
  const range = { gte: sessionKey(tenant, session, from), lt: sessionRecordRange(tenant, session).lt };
  const seqs = await view.values({ ...range, limit: end - from });
  const texts = await view.getMany(seqs.map((seq) => recordKey(tenant, Number(seq))));
  if (texts.length !== end - from) throw mismatch(tenant);
  const items = texts.map((text, offset) => readEntry(text, tenant, session, from + offset));
  await checkLinks(
    view,
    tenant,
    texts.map((text) => sha256Hex(text ?? "")),
    items,
  );
  return { items, next: end < total ? String(end) : null };
}

/**
 * Throws EVIDENCE_UNAVAILABLE unless the bytes of neighbouring records are those that the session and the chain go on from:
 * a disk may return others.
 */
async function checkLinks(
  view: StoreView,
  tenant: string,
  hashes: readonly string[],
  items: readonly ActionRecord[],
): Promise<void> {
  for (const [at, { session }] of items.entries()) {
    if (at > 0 && session.prev_hash !== hashes[at - 1]) throw mismatch(tenant);
  }
  const seq = items.at(-1)?.seq ?? -1;
  const text = await view.get(recordKey(tenant, seq + 1));
  const next = text === undefined ? undefined : readRecord(text);
  if (next !== undefined && isChainFault(next)) throw mismatch(tenant);
  const linked = next?.prev_hash ?? parseCheckpoint((await view.get(checkpointKey(tenant))) ?? "")?.head;
  if (linked !== hashes.at(-1)) throw mismatch(tenant);
}

/** Counts the records of a session. Throws NOT_FOUND for one that this tenant does not have, or no longer has. */
export async function countRecords(reader: Reader, tenant: string, session: string): Promise<number> {
  const known = session.length <= maxSession && session.isWellFormed();
  const text = known ? await reader.get(sessionKey(tenant, session)) : undefined;
  if (text === undefined) throw notFound();
  const summary = parseSessionSummary(text);
  if (summary === undefined) throw mismatch(tenant);
  if (summary.last_seq < (await readFirstKept(reader, tenant))) throw notFound();
  return summary.records;
}

/** The index of the first record of a session that was not pruned. */
async function findFirstIndex(view: StoreView, tenant: string, session: string): Promise<number> {
  const firstKept = await readFirstKept(view, tenant);
  if (firstKept === 0) return 0;
  for await (const [key, seq] of view.entries(sessionRecordRange(tenant, session))) {
    if (Number(seq) >= firstKept) return seqIn(key);
  }
  throw mismatch(tenant);
}

function readEntry(text: string | undefined, tenant: string, session: string, index: number): ActionRecord {
  const record = text === undefined ? undefined : readRecord(text);
  if (record === undefined || isChainFault(record) || !isAction(record) || record.tenant !== tenant)
    throw mismatch(tenant);
  if (record.session.id !== session || record.session.index !== index) throw mismatch(tenant);
  return record;
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxPage) return limit;
  throw new GatewayError("INVALID_PARAMS", `expected \`limit\` from 1 to ${maxPage}, got \`${limit}\``);
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

/** Kinds of events that concern every session: keys, configuration, extensions, erasures and prunings, jumps of the clock. */
const sharedKinds = ["configuration", "extension", "redaction", "retention", "clock"] as const;
/** Kinds of events that concern the session they name. */
const ownKinds = ["approval", "session", "ticket"] as const;

/**
 * The numbers of a session's records, but for pruned ones, and of the events a verifier needs beside them, in the order of the chain;
 * undefined where they are more than `maxSeqs`.
 */
export async function readSessionSeqs(
  view: StoreView,
  tenant: string,
  session: string,
  maxSeqs: number,
): Promise<readonly number[] | undefined> {
  const firstKept = await readFirstKept(view, tenant);
  const seqs: number[] = [];
  for await (const [, at] of view.entries(sessionRecordRange(tenant, session))) {
    // One entry before the cut stays where the session goes on after it, more while it is being pruned.
    if (Number(at) >= firstKept && seqs.push(Number(at)) > maxSeqs) return undefined;
  }
  for (const range of [keyRecordRange(tenant), ...sharedKinds.map((kind) => eventRange(tenant, kind))]) {
    for await (const [key] of view.entries({ ...range, limit: maxSeqs + 1 })) seqs.push(seqIn(key));
  }
  // A kill of the principal, the tenant or the whole gateway stops this session too.
  const wider = new Set(["tenant", "gateway", await readPrincipal(view, tenant, session)]);
  for (const kind of ownKinds) {
    for await (const [key, about] of view.entries(eventRange(tenant, kind))) {
      const isOwn = about === session || (kind === "session" && wider.has(about));
      if (isOwn && seqs.length <= maxSeqs) seqs.push(seqIn(key));
    }
  }
  return seqs.length > maxSeqs ? undefined : seqs.sort((a, b) => a - b);
}

/** The principal of a session. */
async function readPrincipal(view: StoreView, tenant: string, session: string): Promise<string> {
  const text = await view.get(sessionKey(tenant, session));
  return text === undefined ? session : checkSummary(text, tenant).principal;
}

/** The detail of an event's record, and its time. */
interface EventEntry {
  readonly time: string;
  readonly detail: JsonObject;
}

const readAtOnce = 500;

/**
 * A tenant's events of one kind, in the order of its chain; those whose records were pruned are left out. Rejects with
 * EVIDENCE_UNAVAILABLE for a record of another kind. Does not verify the chain; `verify` does.
 */
export async function* readEvents(store: EvidenceStore, tenant: string, kind: EventKind): AsyncGenerator<EventEntry> {
  const keys = store.keys(eventRange(tenant, kind));
  try {
    for (;;) {
      const some = await keys.nextv(readAtOnce);
      if (some.length === 0) return;
      const texts = await store.getMany(some.map((key) => recordKey(tenant, seqIn(key))));
      for (const text of texts) if (text !== undefined) yield readEvent(text, tenant, kind);
    }
  } finally {
    await keys.close();
  }
}

function readEvent(text: string, tenant: string, kind: EventKind): EventEntry {
  const record = parseKept(text);
  if (isJsonObject(record) && record.kind === kind && typeof record.time === "string" && isJsonObject(record.detail)) {
    return { time: record.time, detail: record.detail };
  }
  throw new GatewayError("EVIDENCE_UNAVAILABLE", `events of tenant \`${tenant}\` do not match its chain`);
}

/** Parses a summary; undefined for a text that this ledger has not written. */
export function parseSessionSummary(text: string): SessionSummary | undefined {
  try {
    const summary = JSON.parse(text) as SessionSummary;
    return [summary.records, summary.first_seq, summary.last_seq].every(isCount) ? summary : undefined;
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
