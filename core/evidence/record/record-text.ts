import { canonicalJson } from "../../action/canonical-json.ts";
import { isJsonObject, type Json } from "../../action/json.ts";
import { type ChainFault, chainFault } from "./reason.ts";
import {
  type ActionRecord,
  actionKinds,
  type EventRecord,
  type EvidenceRecord,
  eventKinds,
  recordSchema,
} from "./record.ts";

const kinds: ReadonlySet<Json> = new Set<Json>([...actionKinds, ...eventKinds]);

/**
 * Reads the text of one record. The text must be canonical, or two readers could see two records in one digest.
 * Members are not checked beyond schema, kind, tenant, position and links: those are what holds the chain together.
 */
export function readRecord(text: string): EvidenceRecord | ChainFault {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return chainFault("malformed", "expected JSON, got other bytes");
  }
  if (!isJsonObject(value)) return chainFault("bad_schema", "expected a JSON object");
  if (!isCanonical(value, text)) return chainFault("not_canonical", "expected canonical JSON (RFC 8785)");
  if (value.schema !== recordSchema) return chainFault("bad_schema", `expected schema \`${recordSchema}\``);
  if (!kinds.has(value.kind ?? null)) return chainFault("bad_schema", "expected a known record kind");
  return frameFault(value) ?? (value as unknown as EvidenceRecord);
}

function frameFault(value: { readonly [member: string]: Json }): ChainFault | undefined {
  for (const member of ["tenant", "chain", "prev_hash", "id", "time"] as const) {
    if (typeof value[member] !== "string") return chainFault("bad_schema", `expected \`${member}\` to be a string`);
  }
  if (!Number.isSafeInteger(value.seq)) return chainFault("bad_schema", "expected `seq` to be an integer");
  if (!isJsonObject(value.writer) || !Number.isSafeInteger(value.writer.epoch)) {
    return chainFault("bad_schema", "expected `writer` with an integer epoch");
  }
  if (value.kind !== "decision" && value.kind !== "outcome") return undefined;
  if (!isJsonObject(value.action) || typeof value.action.id !== "string")
    return chainFault("bad_schema", "expected `action` with an id");
  const session = value.session;
  if (!isJsonObject(session) || typeof session.id !== "string" || !Number.isSafeInteger(session.index)) {
    return chainFault("bad_schema", "expected `session` with an id and an integer index");
  }
  return undefined;
}

/** The engine's serialiser answers for nearly every record; the canonical one where keys look like integers. */
function isCanonical(value: Json, text: string): boolean {
  if (isSorted(value) && JSON.stringify(value) === text && !text.includes("\\ud")) return true;
  try {
    return canonicalJson(value) === text;
  } catch {
    return false;
  }
}

function isSorted(value: Json): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isSorted);
  let before = "";
  for (const [key, member] of Object.entries(value)) {
    if (key < before || !isSorted(member)) return false;
    before = key;
  }
  return true;
}

export function isAction(record: EvidenceRecord): record is ActionRecord {
  return record.kind === "decision" || record.kind === "outcome";
}

export function isApprovalEvent(record: EvidenceRecord): record is EventRecord {
  return record.kind === "approval";
}

export function isSessionEvent(record: EvidenceRecord): record is EventRecord {
  return record.kind === "session";
}
