import type { Operation } from "../kernel/operation.ts";
import type { SigningKey } from "../kernel/signing-key.ts";
import type { Chain } from "./chain-table.ts";
import { signCheckpoint } from "./checkpoint.ts";
import { checkpointAtKey, checkpointKey, tileKey } from "./key-space.ts";
import type { FullTile } from "./tile.ts";

/** A sealed record as a leaf of its chain's tree. */
export interface Leaf {
  readonly chain: Chain;
  readonly seq: number;
  /** SHA-256 (hex) of the record's bytes. */
  readonly hash: string;
  readonly time: string;
  /** Who signs a checkpoint that ends with this leaf: the chain's key, or both of a rotation. */
  readonly signers: readonly SigningKey[];
  /** Whether there must be a checkpoint of exactly this size, for good. */
  readonly keep: boolean;
}

/**
 * Adds leaves to their trees, in the order given, and signs where each chain stands after them. Returns what must be
 * written in the same batch as the records: the tiles that are full, the latest checkpoint, and those that stay.
 */
export function attest(leaves: readonly Leaf[]): Operation[] {
  const last = new Map(leaves.map((leaf) => [leaf.chain, leaf]));
  return leaves.flatMap((leaf) => {
    const operations = leaf.chain.tree.append(leaf.hash).map((tile) => putTile(leaf.chain.tenant, tile));
    const isLast = last.get(leaf.chain) === leaf;
    if (isLast || leaf.keep) operations.push(...putCheckpoint(leaf, isLast));
    return operations;
  });
}

function putTile(tenant: string, { level, index, hashes }: FullTile): Operation {
  return { type: "put", key: tileKey(tenant, level, index), value: hashes.toString("hex") };
}

function putCheckpoint({ chain, seq, hash, time, signers, keep }: Leaf, isLast: boolean): Operation[] {
  const size = seq + 1;
  if (chain.tree.size !== size)
    throw new TypeError(`attest: expected a tree of ${size} leaves, got ${chain.tree.size}`);
  const note = signCheckpoint({ chain: chain.id, size, root: chain.tree.root(), head: hash, time }, signers);
  const keys = [
    ...(isLast ? [checkpointKey(chain.tenant)] : []),
    ...(keep ? [checkpointAtKey(chain.tenant, size)] : []),
  ];
  return keys.map((key) => ({ type: "put", key, value: note }));
}
