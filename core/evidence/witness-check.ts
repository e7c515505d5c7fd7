import type { ChainEnd } from "./attested-head.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "./checkpoint.ts";
import type { KeyHistory } from "./key-history.ts";
import type { TileReader } from "./tile-reader.ts";

/**
 * What a witness's latest note says of a chain. `behind`: the chain is shorter than it was. `forked`: it is another
 * history, or its keys are not those it had. `unreadable`: the note says nothing.
 */
export type Testimony =
  | { readonly verdict: "consistent" | "behind" | "forked"; readonly size: number }
  | { readonly verdict: "unreadable" };

/** Why a tenant is refused whose chain a witness contradicts; undefined where it does not. */
export function contradiction(testimony: Testimony, witness: string, { tenant, head }: ChainEnd): string | undefined {
  if (testimony.verdict !== "behind" && testimony.verdict !== "forked") return undefined;
  const { verdict, size } = testimony;
  const told = `chain of tenant \`${tenant}\` is`;
  return verdict === "behind"
    ? `${told} behind its witness \`${witness}\`: expected ${size} records, got ${head.seq + 1}`
    : `${told} forked from its witness \`${witness}\` at or before record ${size - 1}`;
}

/** Compares a witness's note with the chain as it is. Rejects with TreeFault where the tree has a hole. */
export async function checkTestimony(
  note: string,
  end: ChainEnd,
  keys: KeyHistory,
  tree: TileReader,
): Promise<Testimony> {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === undefined || checkpoint.chain !== end.chain) return { verdict: "unreadable" };
  const { size } = checkpoint;
  if (size > end.head.seq + 1) return { verdict: "behind", size };
  if (!isCheckpointSignedBy(checkpoint, keys.keysAt(size))) return { verdict: "forked", size };
  return { verdict: (await tree.root(size)).equals(checkpoint.root) ? "consistent" : "forked", size };
}
