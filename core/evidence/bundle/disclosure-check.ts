import { canonicalJson } from "../../kernel/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { fieldCommitment, fieldsDigest } from "../field-commitment.ts";
import type { ActionRecord } from "../record.ts";
import { isAction } from "../record-text.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-file.ts";
import { type Manifest, manifestFile, type Redacted } from "./manifest.ts";
import type { BundledRecord } from "./record-file.ts";
import { isDigest, objectWith } from "./shape.ts";

export const disclosureFile = "disclosures.json";

/** The members of an action whose values lie apart, and the digest of each that a record may carry. */
const digestOf = {
  arguments: ({ kind, action }: ActionRecord): string | undefined =>
    kind === "decision" ? action.arguments_digest : undefined,
  output: ({ action }: ActionRecord): string | undefined => action.output_digest,
} as const;

/**
 * Each record's digests are those of the fields listed for it, each disclosed field is the one committed to, and what
 * is withheld is counted in the manifest. Throws Breach `bad_disclosure` or `manifest_mismatch`.
 */
export function checkDisclosures(records: readonly BundledRecord[], manifest: Manifest, bytes: Uint8Array): void {
  const disclosures = readCanonicalJson<JsonObject>(bytes, disclosureFile, objectWith({}));
  const redacted: Redacted[] = [];
  let described = 0;
  for (const { record } of records) {
    if (!isAction(record)) continue;
    const entry = disclosures[record.seq];
    if (entry !== undefined) described++;
    redacted.push(...checkEntry(record, entry ?? {}));
  }
  if (described !== Object.keys(disclosures).length) throw new Breach("bad_disclosure", { file: disclosureFile });
  if (canonicalJson(redacted as unknown as Json) !== canonicalJson((manifest.redacted ?? null) as unknown as Json)) {
    throw new Breach("manifest_mismatch", { file: manifestFile });
  }
}

/** Returns how much of the record is withheld. */
function checkEntry(record: ActionRecord, entry: Json): Redacted[] {
  const { seq } = record;
  const refuse = (): never => {
    throw new Breach("bad_disclosure", { file: disclosureFile, seq });
  };
  if (!isJsonObject(entry)) return refuse();
  const members = (["arguments", "output"] as const).filter((member) => digestOf[member](record) !== undefined);
  if (Object.keys(entry).join() !== members.join()) return refuse();
  return members.flatMap((member) => {
    const count = countWithheld(entry[member] as Json, digestOf[member](record));
    if (count === undefined) return refuse();
    return count === 0 ? [] : [{ count, member, seq }];
  });
}

/** Undefined where the fields are not those of the digest. Fields stand in the order of their commitments. */
function countWithheld(fields: Json, digest: string | undefined): number | undefined {
  if (!Array.isArray(fields) || !fields.every(isField)) return undefined;
  const commitments = fields.map(({ commitment }) => commitment);
  const isOrdered = commitments.every((each, at) => at === 0 || (commitments[at - 1] as string) < each);
  if (!isOrdered || fieldsDigest(commitments) !== digest) return undefined;
  return fields.filter(({ salt }) => salt === undefined).length;
}

interface Field {
  readonly commitment: string;
  readonly salt?: string;
}

/** A field is disclosed whole, or not at all: a name without its salt would be a claim nobody can check. */
function isField(field: Json): field is JsonObject & Field {
  if (!isJsonObject(field) || !isDigest(field.commitment)) return false;
  const members = Object.keys(field).join();
  if (members === "commitment") return true;
  const { commitment, name, salt, value } = field;
  if (members !== "commitment,name,salt,value" || typeof name !== "string" || typeof salt !== "string") return false;
  return fieldCommitment({ name, salt, value: value as Json }) === commitment;
}
