import type { JsonObject } from "../../action/json.ts";
import { type SigningKey, VerifyingKey } from "../../action/signing-key.ts";
import { type EvidenceStore, keyRecordRange, recordKey, seqIn } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import type { EventRecord, EvidenceRecord } from "../record/record.ts";
import { readRecord } from "../record/record-text.ts";

/** A key and the sizes of the chain it signs for, both included; `toSize` null while it is the current one. */
interface KeyTenure {
  readonly key: VerifyingKey;
  readonly fromSize: number;
  readonly toSize: number | null;
}

/**
 * The keys of a chain and the sizes at which each was valid, by its genesis record and its rotations in order.
 * A key signs up to the checkpoint over its own rotation; that one carries both signatures.
 */
export class KeyHistory {
  readonly #tenures: KeyTenure[] = [];

  /** Accepts the next record; false where it should introduce a key and introduces no valid one. */
  accept(record: EvidenceRecord): boolean {
    if (record.kind === "genesis") return this.#begin(record as EventRecord);
    return record.kind === "key" ? this.#rotate(record as EventRecord) : true;
  }

  get tenures(): readonly KeyTenure[] {
    return this.#tenures;
  }

  get current(): VerifyingKey | undefined {
    return this.#tenures.at(-1)?.key;
  }

  /** The keys that must have signed a checkpoint of this size: one, or two over a rotation; none before the genesis. */
  keysAt(size: number): VerifyingKey[] {
    return this.#tenures
      .filter(({ fromSize, toSize }) => fromSize <= size && size <= (toSize ?? size))
      .map(({ key }) => key);
  }

  #begin(record: EventRecord): boolean {
    const key = readGenesisKey(record.detail);
    if (key === undefined || this.#tenures.length > 0) return false;
    this.#tenures.push({ key, fromSize: 1, toSize: null });
    return true;
  }

  #rotate(record: EventRecord): boolean {
    const last = this.#tenures.at(-1);
    const place = { chain: record.chain, seq: record.seq, prevHash: record.prev_hash };
    const key = last === undefined ? undefined : readRotationKey(record.detail, place, last.key);
    if (last === undefined || key === undefined) return false;
    if (this.#tenures.some((tenure) => tenure.key.id === key.id)) return false; // a key that was rotated out does not return
    const size = record.seq + 1;
    this.#tenures[this.#tenures.length - 1] = { ...last, toSize: size };
    this.#tenures.push({ key, fromSize: size, toSize: null });
    return true;
  }
}

/** The place of a rotation in its chain; both keys sign for exactly this place. */
interface RotationPlace {
  readonly chain: string;
  readonly seq: number;
  /** The `prev_hash` of the rotation's record. */
  readonly prevHash: string;
}

/** The detail of a genesis record that introduces the chain's first key. */
export function genesisDetail(key: VerifyingKey): JsonObject {
  return { key_id: key.id, public_key: key.text };
}

/** The detail of the `key` record that rotates a chain's key, signed by both keys. */
export function rotationDetail(place: RotationPlace, from: SigningKey, to: SigningKey): JsonObject {
  const text = rotationText(place, from.id, to.id);
  return {
    event: "rotated",
    new_key_id: to.id,
    new_public_key: to.public.text,
    old_key_id: from.id,
    proof_new: to.sign(text).toString("base64"),
    proof_old: from.sign(text).toString("base64"),
  };
}

/** The key that a genesis record introduces; undefined where it introduces none. */
function readGenesisKey(detail: JsonObject): VerifyingKey | undefined {
  const key = typeof detail.public_key === "string" ? VerifyingKey.parse(detail.public_key) : undefined;
  return key !== undefined && key.id === detail.key_id ? key : undefined;
}

/** The new key of a rotation; undefined unless both keys signed for this very place. */
function readRotationKey(detail: JsonObject, place: RotationPlace, from: VerifyingKey): VerifyingKey | undefined {
  const { event, new_key_id, new_public_key, old_key_id, proof_new, proof_old } = detail;
  const to = typeof new_public_key === "string" ? VerifyingKey.parse(new_public_key) : undefined;
  if (event !== "rotated" || to === undefined || to.id !== new_key_id || from.id !== old_key_id) return undefined;
  const text = rotationText(place, from.id, to.id);
  return isProof(text, proof_old, from) && isProof(text, proof_new, to) ? to : undefined;
}

function isProof(text: string, proof: unknown, key: VerifyingKey): boolean {
  if (typeof proof !== "string") return false;
  const signature = Buffer.from(proof, "base64");
  return signature.toString("base64") === proof && key.verify(text, signature);
}

function rotationText({ chain, seq, prevHash }: RotationPlace, oldKeyId: string, newKeyId: string): string {
  return `evidence-key-rotation-v1\n${chain}\n${seq}\n${oldKeyId}\n${newKeyId}\n${prevHash}\n`;
}

/** Reads the keys of a chain through the index of its records. Returns the fault where a record introduces no key. */
export async function readKeyHistory(
  store: EvidenceStore,
  tenant: string,
  chain: string,
): Promise<KeyHistory | string> {
  const history = new KeyHistory();
  for await (const [key, id] of store.iterator(keyRecordRange(tenant))) {
    const seq = seqIn(key);
    const text = await store.get(recordKey(tenant, seq));
    const record = text === undefined ? undefined : readRecord(text);
    const sound = record !== undefined && !isChainFault(record) && record.tenant === tenant && record.chain === chain;
    if (!sound || record.seq !== seq || !history.accept(record) || history.current?.id !== id) {
      return `has no good signing key at record ${seq}`;
    }
  }
  return history.current === undefined ? "has no signing key" : history;
}
