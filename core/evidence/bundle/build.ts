import { canonicalJson } from "../../kernel/canonical-json.ts";
import { sha256Hex } from "../../kernel/digest.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import type { EvidenceRecord } from "../record.ts";
import type { SigningKey } from "../signing-key.ts";
import { checkpointFile, readmeFile } from "./bundle-file.ts";
import { disclosureFile } from "./disclosure-check.ts";
import { bundleSchema, type KeyRange, manifestFile, type Redacted, signManifest } from "./manifest.ts";
import { consistencyFile, proofFile } from "./proof-check.ts";
import { provenanceFile, provenanceJson } from "./provenance.ts";
import { readmeText } from "./readme.ts";
import { type BundledRecord, recordFile } from "./record-file.ts";
import { packTar } from "./tar.ts";
import { witnessFile } from "./witness-check.ts";

/** A field as a bundle shows it: whole, or its commitment alone. */
export type ShownField =
  | { readonly commitment: string }
  | { readonly commitment: string; readonly salt: string; readonly name: string; readonly value: Json };

/** The fields of one record, by the member they belong to. */
export type ShownFields = Partial<Readonly<Record<Redacted["member"], readonly ShownField[]>>>;

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
  readonly keys: readonly KeyRange[];
  readonly fields: ReadonlyMap<number, ShownFields>;
  readonly witnessed?: Witnessed;
}

/** The bundle of a session as one file. Equal contents make equal bytes. */
export function buildBundle(content: BundleContent, key: SigningKey): Buffer {
  const checkpoint = parseCheckpoint(content.checkpoint);
  if (checkpoint === undefined) throw new TypeError("buildBundle: expected a checkpoint's note");
  const files = contentFiles(content, checkpoint.size);
  const manifest = {
    schema: bundleSchema,
    tenant: content.tenant,
    chain: checkpoint.chain,
    session: content.session,
    created: content.created,
    size: checkpoint.size,
    root: checkpoint.root.toString("hex"),
    files: Object.fromEntries([...files].map(([name, text]) => [name, sha256Hex(text)])),
    redacted: countRedacted(content.fields),
    public_keys: content.keys,
  } as const;
  files.set(manifestFile, signManifest(manifest, key));
  return packTar(new Map([...files].map(([name, text]) => [name, Buffer.from(text)])));
}

function contentFiles(content: BundleContent, size: number): Map<string, string> {
  const records = content.texts.map(readOwn);
  const files = new Map([
    [readmeFile, readmeText(content.session)],
    [checkpointFile, content.checkpoint],
    [disclosureFile, canonicalJson(numbered(content.fields))],
    [proofFile, canonicalJson(numbered(content.proofs))],
    [provenanceFile, canonicalJson(provenanceJson(records))],
    [recordFile, content.texts.map((text) => `${text}\n`).join("")],
  ]);
  const { witnessed } = content;
  const first = witnessed === undefined ? undefined : parseCheckpoint(witnessed.note)?.size;
  if (witnessed === undefined || first === undefined) return files;
  const consistency = canonicalJson({ first, second: size, proof: witnessed.proof });
  return files.set(witnessFile, witnessed.note).set(consistencyFile, consistency);
}

/** The withheld fields of each record and member, in the order of the chain. */
function countRedacted(fields: BundleContent["fields"]): readonly Redacted[] {
  return [...fields]
    .sort(([a], [b]) => a - b)
    .flatMap(([seq, shown]) =>
      (["arguments", "output"] as const).map((member) => {
        const count = (shown[member] ?? []).filter((field) => !("salt" in field)).length;
        return { seq, member, count };
      }),
    )
    .filter(({ count }) => count > 0);
}

function numbered(entries: ReadonlyMap<number, unknown>): JsonObject {
  return Object.fromEntries(entries) as JsonObject;
}

function readOwn(text: string): BundledRecord {
  return { record: JSON.parse(text) as EvidenceRecord, hash: sha256Hex(text) };
}
