import type { AbstractBatchOptions, AbstractPutOptions } from "abstract-level";
import { GatewayError } from "../../action/error.ts";
import {
  familyPrefixes,
  type KeyRange,
  lastPart,
  rangeOf,
  type StringLevel,
  tenantPrefix,
} from "../../store/key-range.ts";

/** The database as this folder uses it: string keys and values, atomic batches, strictly ordered ranges. */
export type EvidenceStore = StringLevel;

/** The option that makes a write wait for the disk; the abstract interface does not name it, both engines take it. */
export const durably: WriteOptions = { sync: true };
type WriteOptions = AbstractPutOptions<string, string> & AbstractBatchOptions<string, string> & { readonly sync: true };

const seqDigits = 16;
const pieceDigits = 6;

/** Keys outside any tenant have no `/`, and every tenant's key has one: they cannot meet. */
export const epochKey = "epoch";
export const probeKey = "probe";
/** Name and key of this data folder towards its witnesses. */
export const installationKey = "installation";

/** The heads that were published to a witness, by its configured name. */
export function publishedHeadsKey(witness: string): string {
  return `meta-${encodeURIComponent(witness)}`;
}

/** The published heads of every witness; a tenant whose name begins so has keys here too, each with a `/`. */
export function publishedHeadsRange(): KeyRange {
  return { gte: "meta-", lt: "meta." }; // "." follows "-"
}

/**
 * The parts of a record that are stored apart: its text; its private fields, encrypted; the key that earlier versions
 * encrypted them with, itself encrypted with the chain's wrapping key; the action that this decision held for review,
 * sealed, for as long as it may be reviewed or used; and the place of the pieces of private fields that are large.
 */
export const recordParts = ["record", "disclosure", "data-key", "held", "pieces"] as const;
type RecordPart = (typeof recordParts)[number] | "piece";
const families: Readonly<Partial<Record<RecordPart, string>>> = familyPrefixes;
/** All that grows with the records, parts of a record and the pieces themselves. */
export const growingParts: readonly RecordPart[] = [...recordParts, "piece"];

/** The key of a record, or of a part of it that can be erased; of `piece`, what the keys begin with. */
export function recordKey(tenant: string, seq: number, part: RecordPart = "record"): string {
  const family = families[part];
  const own = tenantPrefix(tenant);
  return (family === undefined ? `${own}${part}/` : family + own) + sequence(seq);
}

/** Every record of a tenant's chain, in order. */
export function recordRange(tenant: string): KeyRange {
  return partRange(tenant, "record");
}

/** A part of every record of a tenant, in order. */
export function partRange(tenant: string, part: RecordPart): KeyRange {
  return rangeOf(recordKey(tenant, 0, part).slice(0, -seqDigits));
}

/** Everything that is kept of the private fields of the records `first` to `last` but their pieces. */
export function privateRanges(tenant: string, first: number, last: number): readonly KeyRange[] {
  return (["disclosure", "data-key", "held"] as const).map((part) => ({
    gte: recordKey(tenant, first, part),
    lt: recordKey(tenant, last + 1, part),
  }));
}

/**
 * A piece of large private fields. Its group lies before their record: its name begins with the sequence number of a record before
 * them, which `pieceGroup` makes.
 */
export function pieceKey(tenant: string, group: string, index: number): string {
  return `${familyPrefixes.piece}${tenantPrefix(tenant)}${group}/${String(index).padStart(pieceDigits, "0")}`;
}

export function pieceRange(tenant: string, group: string): KeyRange {
  return rangeOf(pieceKey(tenant, group, 0).slice(0, -pieceDigits));
}

export function pieceGroup(seq: number, id: string): string {
  return `${sequence(seq)}-${id}`;
}

/** Present from the first piece of a group until a record has it. */
export function openGroupKey(tenant: string, group: string): string {
  return `${tenantPrefix(tenant)}open-pieces/${group}`;
}

export function openGroupRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}open-pieces/`);
}

/** The approvals that are not over, as of one record. */
export function approvalSummaryKey(tenant: string): string {
  return `${tenantPrefix(tenant)}approval-summary`;
}

/** Present from a dispatched decision to its outcome; its value is the decision's sequence number. */
export function openKey(tenant: string, actionId: string): string {
  return `${tenantPrefix(tenant)}open/${encodeURIComponent(actionId)}`;
}

export function openRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}open/`);
}

/** The summary of a session; with an index, the record of that index in the session: its value is the sequence number. */
export function sessionKey(tenant: string, session: string, index?: number): string {
  const id = encodeURIComponent(session);
  if (index === undefined) return `${tenantPrefix(tenant)}session/${id}`;
  return `${tenantPrefix(tenant)}session-record/${id}/${sequence(index)}`;
}

/** A session by the sequence number of its first record; its value is the session's id. */
export function sessionOrderKey(tenant: string, firstSeq: number): string {
  return `${tenantPrefix(tenant)}session-order/${sequence(firstSeq)}`;
}

export function sessionOrderRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}session-order/`);
}

export function sessionRecordRange(tenant: string, session: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}session-record/${encodeURIComponent(session)}/`);
}

/** 256 neighbouring hashes of the tree, in hex: tile `index` of a level of tiles, the leaves' being 0. */
export function tileKey(tenant: string, level: number, index: number): string {
  return `${tenantPrefix(tenant)}tile/${level}/${sequence(index)}`;
}

/** The signed note of the chain's latest checkpoint. */
export function checkpointKey(tenant: string): string {
  return `${tenantPrefix(tenant)}checkpoint`;
}

/** The signed note of an earlier checkpoint that stays: over a genesis or a rotation, or known to a witness. */
export function checkpointAtKey(tenant: string, size: number): string {
  return `${tenantPrefix(tenant)}checkpoint-at/${sequence(size)}`;
}

export function checkpointAtRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}checkpoint-at/`);
}

/** The state of the chain as of a checkpoint, but for its map of sessions and principals. */
export function stateKey(tenant: string): string {
  return `${tenantPrefix(tenant)}state`;
}

/** A page of that map: the 16 slots below a prefix of paths, in hex. */
export function statePageKey(tenant: string, prefix: string): string {
  return `${tenantPrefix(tenant)}state-page/${prefix}`;
}

export function statePageRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}state-page/`);
}

/** Present for each record that introduces a signing key, the genesis and rotations; its value is the key's id. */
export function keyRecordKey(tenant: string, seq: number): string {
  return `${tenantPrefix(tenant)}signing-key/${sequence(seq)}`;
}

export function keyRecordRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}signing-key/`);
}

/** The remains of the pruned records: the first kept record, and the hashes that no full tile holds. */
export function prunedKey(tenant: string): string {
  return `${tenantPrefix(tenant)}pruned`;
}

/** The salt that hides a tenant's chain in the published tenant index. */
export function tenantIndexSaltKey(tenant: string): string {
  return `${tenantPrefix(tenant)}meta-salt`;
}

/** An event by its kind; its value is the session, the principal or the scope it is about, or nothing. */
export function eventKey(tenant: string, kind: string, seq: number): string {
  return `${tenantPrefix(tenant)}event/${kind}/${sequence(seq)}`;
}

export function eventRange(tenant: string, kind: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}event/${kind}/`);
}

/** Every key of a tenant. */
export function tenantRange(tenant: string): KeyRange {
  return rangeOf(tenantPrefix(tenant));
}

/** The sequence number that a key ends with. */
export function seqIn(key: string): number {
  return Number(lastPart(key));
}

/** Numbers are read out of the store, too, where a disk may have damaged them. */
function sequence(number: number): string {
  if (!Number.isSafeInteger(number) || number < 0)
    throw new GatewayError("EVIDENCE_UNAVAILABLE", "expected a sequence number; verify the chain");
  return String(number).padStart(seqDigits, "0");
}
