import { canonicalJson } from "../../kernel/canonical-json.ts";
import { sha256Hex } from "../../kernel/digest.ts";
import type { Json } from "../../kernel/json.ts";
import type { EvidenceRecord } from "../record.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-line.ts";
import { recordShape } from "./record-shape.ts";
import { closedObject, count, digest, exactly, listOf, matching, objectWith, oneOf, text, time } from "./shape.ts";

/** The name of the format, and what its seal's signature begins with. A reader refuses any other. */
export const bundleSchema = "evidence-bundle-v1";

/** The first line: what the bundle says of itself, and the tree that its records are in. */
export interface BundleHead {
  readonly schema: typeof bundleSchema;
  readonly tenant: string;
  readonly chain: string;
  readonly session: string;
  /** RFC 3339 time of the export; every record after the checkpoint is younger. */
  readonly created: string;
  /** The signed note over the whole chain. */
  readonly checkpoint: string;
  /** Inclusion proof (hex) of the checkpoint's own last record. */
  readonly head_proof: readonly string[];
  readonly consistency: Consistency;
}

/** The tree as a witness had last seen it, and the proof (hex) that it only grew since. */
export interface Consistency {
  readonly first: number;
  readonly root: string;
  readonly proof: readonly string[];
}

/** A line between the first and the last: a record, and what belongs to it. */
export interface BundleEntry {
  /** The fields its digest is over, as the texts that were hashed; of withheld ones the hash. */
  readonly fields: readonly string[];
  /** Inclusion proof (hex) in the checkpoint's tree. */
  readonly proof: readonly string[];
  readonly record: EvidenceRecord;
}

/** The last line: a signature over all bytes before it. */
export interface BundleSeal {
  readonly key_id: string;
  readonly signature: string;
}

/** A record with the digest of its exact bytes. */
export interface BundledRecord {
  readonly record: EvidenceRecord;
  readonly hash: string;
}

/** An entry as it was read. */
export type BundledEntry = BundleEntry & BundledRecord;

/** A bundle as it was read; nothing of it is proven. */
export interface OpenBundle {
  readonly head: BundleHead;
  readonly entries: readonly BundledEntry[];
  readonly seal: BundleSeal;
  /** What the seal is over. */
  readonly sealed: Buffer;
}

const hashes = listOf(digest);
const headShape = closedObject({
  schema: exactly(bundleSchema),
  tenant: text,
  chain: text,
  session: text,
  created: time,
  checkpoint: text,
  head_proof: hashes,
  consistency: objectWith({ first: count, root: digest, proof: hashes }),
});
/** A text that begins otherwise was hashed as something else than a field. */
const field = oneOf(digest, matching(/^\["field-v1",/));
const entryShape = closedObject({ fields: listOf(field), proof: hashes, record: recordShape });
/** 64 bytes in base64. */
const signature = matching(/^[A-Za-z0-9+/]{85}[AQgw]==$/);
const sealShape = closedObject({ key_id: text, signature });
const newline = 0x0a;

/**
 * Takes a bundle apart: lines of canonical JSON and nothing else. Throws Breach for what is not in the format.
 * Checks no signature, proof or rule.
 */
export function readBundle(bytes: Uint8Array): OpenBundle {
  const [first, ...lines] = splitLines(bytes);
  const last = lines.pop();
  if (first === undefined || last === undefined) throw new Breach("malformed", { file: "bundle" });
  const head = readCanonicalJson<BundleHead>(first, "line 1", headShape);
  const seal = readCanonicalJson<BundleSeal>(last, `line ${lines.length + 2}`, sealShape);
  const sealed = bytes.subarray(0, bytes.length - last.length - 1);
  return { head, seal, sealed: sealedBytes(sealed), entries: lines.map(readEntry) };
}

/** The chain that a bundle says it is of; undefined where it says nothing readable. */
export function readChainName(bytes: Uint8Array): string | undefined {
  try {
    const [first] = splitLines(bytes);
    const { chain } = readCanonicalJson<BundleHead>(first ?? new Uint8Array(), "line 1", headShape);
    return /^[A-Za-z0-9_-]{1,64}$/.test(chain) ? chain : undefined;
  } catch (error) {
    if (error instanceof Breach) return undefined;
    throw error;
  }
}

/** What the signature of a seal is over: the format's name, so that no other signed text can pass for a bundle. */
export function sealedBytes(lines: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${bundleSchema}\n`), lines]);
}

function readEntry(line: Uint8Array, at: number): BundledEntry {
  const entry = readCanonicalJson<BundleEntry>(line, `line ${at + 2}`, entryShape);
  return { ...entry, hash: sha256Hex(canonicalJson(entry.record as unknown as Json)) };
}

function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(newline, at);
    if (end === -1) throw new Breach("malformed", { file: "bundle" });
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}
