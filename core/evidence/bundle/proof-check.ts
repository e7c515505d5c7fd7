import { sha256Hex } from "../../kernel/digest.ts";
import type { Checkpoint } from "../checkpoint.ts";
import { fieldsDigest } from "../field-commitment.ts";
import { leafHash, verifyConsistency, verifyInclusion } from "../merkle.ts";
import { isAction } from "../record-text.ts";
import { Breach } from "./breach.ts";
import type { BundledEntry, BundleHead } from "./bundle-line.ts";
import { isDigest } from "./shape.ts";

/** A tree of the chain at one of its sizes. */
export type Tree = Pick<Checkpoint, "root" | "size">;

/** The checkpoint's head is the last leaf of its tree. Throws Breach `head_mismatch`. */
export function checkHead(checkpoint: Checkpoint, { head_proof: proof }: BundleHead): void {
  if (isIncluded(checkpoint.head, checkpoint.size - 1, checkpoint, proof)) return;
  throw new Breach("head_mismatch", { file: "checkpoint" });
}

/** The tree that a witness saw last, proven to be the beginning of the checkpoint's. Throws Breach `bad_consistency`. */
export function readEarlierTree(checkpoint: Tree, { consistency }: BundleHead): Tree {
  const earlier = { root: Buffer.from(consistency.root, "hex"), size: consistency.first };
  const proof = bytesOf(consistency.proof);
  if (verifyConsistency(earlier.size, earlier.root, checkpoint.size, checkpoint.root, proof)) return earlier;
  throw new Breach("bad_consistency", { file: "consistency" });
}

/**
 * A record is of this chain, in the checkpoint's tree at its own number, and its fields are those it commits to.
 * Throws Breach `foreign_tenant`, `foreign_chain`, `bad_inclusion` or `bad_disclosure`, `seq_gap` for a number beyond the
 * tree, and `bad_schema` for a genesis that is not the first record, or a first record that is none.
 */
export function checkEntry(entry: BundledEntry, head: BundleHead, checkpoint: Checkpoint): void {
  const { chain, kind, seq, tenant } = entry.record;
  const place = { file: "records", seq } as const;
  if (seq >= checkpoint.size) throw new Breach("seq_gap", place);
  if ((kind === "genesis") !== (seq === 0)) throw new Breach("bad_schema", place);
  if (tenant !== head.tenant) throw new Breach("foreign_tenant", place);
  if (chain !== head.chain) throw new Breach("foreign_chain", place);
  if (!isIncluded(entry.hash, seq, checkpoint, entry.proof)) throw new Breach("bad_inclusion", place);
  if (!areFieldsDue(entry)) throw new Breach("bad_disclosure", place);
}

/** A decision's fields are its arguments, an outcome's its output; they stand in the order of their commitments. */
function areFieldsDue({ fields, record }: BundledEntry): boolean {
  const { arguments_digest: args, output_digest: output } = isAction(record) ? record.action : {};
  const due = record.kind === "decision" ? args : output;
  if (due === undefined) return fields.length === 0;
  const commitments = fields.map((field) => (isDigest(field) ? field : sha256Hex(field)));
  const isOrdered = commitments.every((each, at) => at === 0 || (commitments[at - 1] as string) < each);
  return isOrdered && fieldsDigest(commitments) === due;
}

function isIncluded(digest: string, seq: number, { size, root }: Checkpoint, proof: readonly string[]): boolean {
  return verifyInclusion(leafHash(digest), seq, size, bytesOf(proof), root);
}

function bytesOf(hashes: readonly string[]): readonly Buffer[] {
  return hashes.map((hash) => Buffer.from(hash, "hex"));
}
