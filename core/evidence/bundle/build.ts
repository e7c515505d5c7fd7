import { canonicalJson } from "../../kernel/canonical-json.ts";
import { sha256Hex } from "../../kernel/digest.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import { type Checkpoint, parseCheckpoint } from "../checkpoint.ts";
import { fieldsDigest, fieldText } from "../field-commitment.ts";
import type { PrivateMember } from "../private-field.ts";
import type { SigningKey } from "../signing-key.ts";
import { checkpointFile, readmeFile } from "./bundle-file.ts";
import { disclosureFile } from "./disclosure-check.ts";
import { bundleSchema, manifestFile, signManifest } from "./manifest.ts";
import { consistencyFile, proofFile } from "./proof-check.ts";
import { readmeText } from "./readme.ts";
import { recordFile } from "./record-file.ts";
import { packTar } from "./tar.ts";

/** A field as a bundle shows it: whole, or its commitment alone. */
export type ShownField =
  | { readonly commitment: string }
  | { readonly commitment: string; readonly salt: string; readonly name: string; readonly value: Json };

/** The fields of one record, by the member they belong to. */
export type ShownFields = Partial<Readonly<Record<PrivateMember, readonly ShownField[]>>>;

/** A witness's note about an earlier size of the chain, and what leads from there to the checkpoint. */
export interface Witnessed {
  readonly note: string;
  readonly proof: readonly string[];
}

/** What a bundle is made of. */
export interface BundleContent {
  readonly tenant: string;
  readonly session: string;
  /** RFC 3339; taken before the checkpoint was read. */
  readonly created: string;
  /** The session's records and the events they rest on: exact texts, in the order of the chain. */
  readonly texts: readonly string[];
  /** The signed note that covers them all. */
  readonly checkpoint: string;
  /** Inclusion proofs (hex) by sequence number: of each record, and of the checkpoint's last. */
  readonly proofs: ReadonlyMap<number, readonly string[]>;
  /** The id of the key that signs. */
  readonly keyId: string;
  readonly fields: ReadonlyMap<number, ShownFields>;
  readonly witnessed?: Witnessed;
}

/** The bundle of a session as one file. Equal contents make equal bytes. */
export function buildBundle(content: BundleContent, key: SigningKey): Buffer {
  const checkpoint = parseCheckpoint(content.checkpoint);
  if (checkpoint === undefined) throw new TypeError("buildBundle: expected a checkpoint's note");
  const files = contentFiles(content, checkpoint);
  const manifest = {
    schema: bundleSchema,
    tenant: content.tenant,
    chain: checkpoint.chain,
    session: content.session,
    created: content.created,
    files: Object.fromEntries([...files].map(([name, text]) => [name, sha256Hex(text)])),
  } as const;
  files.set(manifestFile, signManifest(manifest, key));
  return packTar(new Map([...files].map(([name, text]) => [name, Buffer.from(text)])));
}

function contentFiles(content: BundleContent, checkpoint: Checkpoint): Map<string, string> {
  return new Map([
    [readmeFile, readmeText(content.session)],
    [checkpointFile, content.checkpoint],
    [consistencyFile, canonicalJson(growthOf(content, checkpoint))],
    [disclosureFile, canonicalJson(disclose([...content.fields.values()]))],
    [proofFile, canonicalJson(Object.fromEntries(content.proofs))],
    [recordFile, content.texts.map((text) => `${text}\n`).join("")],
  ]);
}

/** What a witness saw last, and that this tree began like it; where there was no witness, this tree itself. */
function growthOf({ witnessed }: BundleContent, { root, size }: Checkpoint): JsonObject {
  const seen = witnessed === undefined ? undefined : parseCheckpoint(witnessed.note);
  if (witnessed === undefined || seen === undefined) return { first: size, proof: [], root: root.toString("hex") };
  return { first: seen.size, proof: witnessed.proof, root: seen.root.toString("hex") };
}

/** By the digest that a record carries: the text of each field, or its commitment where it is withheld. */
function disclose(fields: readonly ShownFields[]): JsonObject {
  const lists = fields.flatMap((shown) => Object.values(shown));
  return Object.fromEntries(
    lists.map((list) => [
      fieldsDigest(list.map(({ commitment }) => commitment)),
      list.map((field) => ("salt" in field ? fieldText(field) : field.commitment)),
    ]),
  );
}
