import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { type Clock, type Random, uuidV7 } from "../../action/id.ts";
import { durably, type EvidenceStore, epochKey } from "./key-space.ts";
import {
  type ActionRecord,
  type EvidenceRecord,
  type RecordedSession,
  type RecordWriter,
  recordSchema,
} from "./record.ts";
import type { ActionBody, EventBody } from "./record-body.ts";
import { recordText } from "./record-text.ts";

/** A record with its exact bytes and their digest. */
export interface Sealed<R extends EvidenceRecord = EvidenceRecord> {
  readonly record: R;
  readonly text: string;
  /** SHA-256 (hex) of the text. */
  readonly hash: string;
}

/** The place of the next record in its chain. */
export interface Place {
  readonly tenant: string;
  readonly chain: string;
  readonly seq: number;
  readonly prevHash: string;
}

/** What every record of this process has in common, and where its time and salt come from. */
export interface Stamp {
  readonly clock: Clock;
  readonly random: Random;
  readonly writer: RecordWriter;
  readonly configDigest: string;
}

const saltBytes = 16;
const idBytes = 10;

// INVARIANT: the members of the literals below are in RFC 8785 order; `recordText` relies on it.

export function sealAction(
  body: ActionBody,
  place: Place,
  session: RecordedSession,
  stamp: Stamp,
): Sealed<ActionRecord> {
  const { id, salt, time } = mark(stamp);
  return seal({
    action: body.action,
    approval: body.approval,
    chain: place.chain,
    client: body.client,
    config_digest: stamp.configDigest,
    effect: body.effect,
    evaluation: body.evaluation,
    id,
    kind: body.kind,
    prev_hash: place.prevHash,
    principal: body.principal,
    reason: body.reason,
    salt,
    schema: recordSchema,
    seq: place.seq,
    session,
    tenant: place.tenant,
    ticket: body.ticket,
    time,
    writer: stamp.writer,
  });
}

export function sealEvent(body: EventBody, place: Place, stamp: Stamp): Sealed {
  const { id, salt, time } = mark(stamp);
  return seal({
    chain: place.chain,
    config_digest: stamp.configDigest,
    detail: body.detail,
    id,
    kind: body.kind,
    prev_hash: place.prevHash,
    salt,
    schema: recordSchema,
    seq: place.seq,
    tenant: place.tenant,
    time,
    writer: stamp.writer,
  });
}

/** A fresh salt: 16 random bytes, base64url. */
export function drawSalt(random: Random): string {
  return base64Url(random(saltBytes));
}

function seal<R extends EvidenceRecord>(record: R): Sealed<R> {
  const text = recordText(record);
  return { record, text, hash: sha256Hex(text) };
}

function mark(stamp: Stamp): { readonly id: string; readonly salt: string; readonly time: string } {
  const now = stamp.clock();
  const bytes = stamp.random(idBytes + saltBytes);
  return {
    id: uuidV7(now, bytes.subarray(0, idBytes)),
    salt: base64Url(bytes.subarray(idBytes)),
    time: new Date(now).toISOString(),
  };
}

function base64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
}

/** The epoch of this process: one more than the last, on disk before any record carries it. */
export async function takeEpoch(store: EvidenceStore): Promise<number> {
  const epoch = Number((await store.get(epochKey)) ?? 0) + 1;
  if (!Number.isSafeInteger(epoch)) throw new GatewayError("STATE_UNUSABLE", "expected `epoch` to be a number");
  await store.put(epochKey, String(epoch), durably);
  return epoch;
}
