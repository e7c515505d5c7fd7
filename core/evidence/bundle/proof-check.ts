import type { Json, JsonObject } from "../../kernel/json.ts";
import type { Checkpoint } from "../checkpoint.ts";
import { leafHash, verifyConsistency, verifyInclusion } from "../merkle.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-file.ts";
import { type BundledRecord, recordFile } from "./record-file.ts";
import { count, digest, isDigest, listOf, objectWith } from "./shape.ts";

export const proofFile = "proofs.json";
export const consistencyFile = "consistency.json";

/**
 * Every record is in the checkpoint's tree at its own number, and the checkpoint's head is the last leaf of that tree.
 * One proof for each record and for the head, and no other. Throws Breach `bad_inclusion`, `head_mismatch` or `seq_gap`.
 */
export function checkInclusion(records: readonly BundledRecord[], checkpoint: Checkpoint, bytes: Uint8Array): void {
  const proofs = readCanonicalJson<JsonObject>(bytes, proofFile, objectWith({}));
  const last = checkpoint.size - 1;
  for (const { record, hash } of records) {
    const place = { file: recordFile, seq: record.seq };
    if (record.seq > last) throw new Breach("seq_gap", place);
    if (!isIncluded(hash, record.seq, checkpoint, proofs[record.seq])) throw new Breach("bad_inclusion", place);
  }
  if (!isIncluded(checkpoint.head, last, checkpoint, proofs[last])) throw new Breach("head_mismatch", { seq: last });
  const expected = new Set([...records.map(({ record }) => String(record.seq)), String(last)]);
  if (Object.keys(proofs).length !== expected.size) throw new Breach("bad_inclusion", { file: proofFile });
}

/** A tree of the chain at one of its sizes. */
export type Tree = Pick<Checkpoint, "root" | "size">;

/** The tree that a witness saw last, proven to be the beginning of the checkpoint's. Throws Breach `bad_consistency`. */
export function readEarlierTree(checkpoint: Tree, bytes: Uint8Array): Tree {
  const { first: size, proof, root } = readCanonicalJson<Consistency>(bytes, consistencyFile, consistency);
  const earlier = { root: Buffer.from(root, "hex"), size };
  const hashes = proof.map((hash) => Buffer.from(hash, "hex"));
  if (verifyConsistency(size, earlier.root, checkpoint.size, checkpoint.root, hashes)) return earlier;
  throw new Breach("bad_consistency", { file: consistencyFile });
}

interface Consistency {
  readonly first: number;
  readonly proof: readonly string[];
  readonly root: string;
}

const consistency = objectWith({ first: count, proof: listOf(digest), root: digest });

function isIncluded(digest: string, seq: number, { size, root }: Checkpoint, proof: Json | undefined): boolean {
  const hashes = readProof(proof);
  return hashes !== undefined && verifyInclusion(leafHash(digest), seq, size, hashes, root);
}

function readProof(proof: Json | undefined): readonly Buffer[] | undefined {
  if (!Array.isArray(proof) || !proof.every(isDigest)) return undefined;
  return proof.map((hash) => Buffer.from(hash, "hex"));
}
