import type { JsonObject } from "../kernel/json.ts";
import { type SigningKey, VerifyingKey } from "../kernel/signing-key.ts";

/** Where a rotation stands; both keys sign for exactly this place. */
export interface RotationPlace {
  readonly chain: string;
  readonly seq: number;
  /** The `prev_hash` of the rotation's record. */
  readonly prevHash: string;
}

/** The detail of a genesis record that introduces the chain's first key. */
export function genesisDetail(key: VerifyingKey): JsonObject {
  return { key_id: key.id, public_key: key.text };
}

/** The detail of the `key` record that hands a chain over, signed by both keys. */
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
export function readGenesisKey(detail: JsonObject): VerifyingKey | undefined {
  const key = typeof detail.public_key === "string" ? VerifyingKey.parse(detail.public_key) : undefined;
  return key !== undefined && key.id === detail.key_id ? key : undefined;
}

/** The key that a rotation hands over to; undefined unless both keys signed for this very place. */
export function readRotationKey(
  detail: JsonObject,
  place: RotationPlace,
  from: VerifyingKey,
): VerifyingKey | undefined {
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
