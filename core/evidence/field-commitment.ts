import { canonicalJson } from "../kernel/canonical-json.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { Json } from "../kernel/json.ts";

/** A private value under its name, and the salt (16 random bytes, base64url) without which nobody can guess it. */
export interface SaltedField {
  readonly name: string;
  readonly salt: string;
  readonly value: Json;
}

/** What a commitment is over, and what discloses it: the RFC 8785 text of `["field-v1", salt, name, value]`. */
export function fieldText({ name, salt, value }: SaltedField): string {
  return canonicalJson(["field-v1", salt, name, value]);
}

/** SHA-256 (hex) of a field's text. */
export function fieldCommitment(field: SaltedField): string {
  return sha256Hex(fieldText(field));
}

/**
 * What a record says of all fields together: `sha256:<hex>` over the RFC 8785 bytes of `["fields-v1", commitments]`,
 * the commitments sorted. A field can be withheld, or erased, and its commitment still completes the digest.
 */
export function fieldsDigest(commitments: readonly string[]): string {
  return `sha256:${sha256Hex(canonicalJson(["fields-v1", commitments.toSorted()]))}`;
}
