import { sha256Hex } from "../../kernel/digest.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import { fieldsDigest } from "../field-commitment.ts";
import { isAction } from "../record-text.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-file.ts";
import type { BundledRecord } from "./record-file.ts";
import { digest, listOf, matching, objectWith, oneOf, type Shape } from "./shape.ts";

export const disclosureFile = "disclosures.json";

/**
 * For every digest of private fields that a record carries, and for no other, the fields are listed: as the very text
 * that was hashed, or as the commitment alone where they are withheld. Throws Breach `bad_disclosure`.
 */
export function checkDisclosures(records: readonly BundledRecord[], bytes: Uint8Array): void {
  const disclosures = readCanonicalJson<JsonObject>(bytes, disclosureFile, objectWith({}));
  const due = new Set(records.flatMap(listDigests));
  const listed = Object.entries(disclosures);
  const isWhole =
    listed.length === due.size && listed.every(([stated, fields]) => due.has(stated) && fits(stated, fields));
  if (!isWhole) throw new Breach("bad_disclosure", { file: disclosureFile });
}

function listDigests({ record }: BundledRecord): string[] {
  if (!isAction(record)) return [];
  const { arguments_digest: args, output_digest: output } = record.action;
  return output === undefined ? [args] : [args, output];
}

/** Whether the fields are those of the digest. They stand in the order of their commitments. */
function fits(stated: string, fields: Json): boolean {
  if (!areFields(fields)) return false;
  const commitments = (fields as readonly string[]).map((field) => (digest(field) ? field : sha256Hex(field)));
  const isOrdered = commitments.every((each, at) => at === 0 || (commitments[at - 1] as string) < each);
  return isOrdered && fieldsDigest(commitments) === stated;
}

/** A text that begins otherwise was hashed as something else than a field. */
const areFields: Shape = listOf(oneOf(digest, matching(/^\["field-v1",/)));
