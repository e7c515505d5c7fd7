import type { JsonObject } from "../kernel/json.ts";
import { type DisclosurePlace, discloseRecord } from "./disclosure.ts";
import { isFault } from "./fault.ts";
import { type EvidenceStore, recordKey, sessionKey, sessionRecordRange } from "./key-space.ts";
import type { ActionRecord } from "./record.ts";
import { isAction, readRecord } from "./record-text.ts";
import { readSummary, type SessionSummary } from "./session-head.ts";
import type { WrappingKey } from "./wrapping-key.ts";

/** A session and the last of its records, in order. */
export interface SessionTail {
  readonly summary: SessionSummary;
  readonly records: readonly ActionRecord[];
}

/** The end of a session; undefined for one that the tenant does not have. Records that are kept no more are left out. */
export async function readTail(
  store: EvidenceStore,
  tenant: string,
  session: string,
  most: number,
): Promise<SessionTail | undefined> {
  const summary = readSummary((await store.get(sessionKey(tenant, session))) ?? "");
  if (summary === undefined) return undefined;
  const seqs = await store.values({ ...sessionRecordRange(tenant, session), reverse: true, limit: most }).all();
  const texts = await store.getMany(seqs.reverse().map((seq) => recordKey(tenant, Number(seq))));
  const records = texts.flatMap((text) => readAction(text) ?? []);
  return { summary, records };
}

/**
 * The arguments of the action that a decision is about; undefined where not every field of them is kept, or where the
 * fields do not say whether they were an object. Throws EVIDENCE_UNAVAILABLE where they are damaged.
 */
export async function readArguments(
  store: EvidenceStore,
  wrapping: WrappingKey,
  { tenant, seq }: Pick<DisclosurePlace, "tenant" | "seq">,
): Promise<JsonObject | undefined> {
  const record = readAction(await store.get(recordKey(tenant, seq)));
  if (record === undefined) return undefined;
  const fields = (await discloseRecord(store, wrapping, record)).arguments;
  const members = fields?.flatMap(({ name, value }) => (name && value !== undefined ? [[name, value] as const] : []));
  if (members === undefined || members.length !== fields?.length) return undefined;
  return Object.fromEntries(members);
}

function readAction(text: string | undefined): ActionRecord | undefined {
  const record = text === undefined ? undefined : readRecord(text);
  return record === undefined || isFault(record) || !isAction(record) ? undefined : record;
}
