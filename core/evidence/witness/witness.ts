import type { Clock, Random } from "../../action/id.ts";
import type { ChainEnd } from "../chain/chain-load.ts";
import type { ChainStatus } from "../chain/chain-table.ts";

import type { KeyStore } from "../key/key-folder.ts";
import type { KeyHistory } from "../key/key-history.ts";
import type { EvidenceStore } from "../record/key-space.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "../tree/checkpoint.ts";
import type { TileReader } from "../tree/tile-reader.ts";

/**
 * A place outside the data folder that keeps signed notes, so that nobody can shorten, replace or fork a chain unseen.
 * A log is one chain, or the list of all chains: `[A-Za-z0-9_-]{1,80}`.
 */
export interface Witness {
  /** Its name in the configuration. */
  readonly name: string;
  /** Stores a note as the latest of its log. Stored when it resolves. */
  append(log: string, note: string, time: string): Promise<void>;
  /** The latest note of a log; undefined where the witness never had one. Rejects when the witness does not answer. */
  latest(log: string): Promise<string | undefined>;
}

/** Characters of the longest answer that is taken for a note. */
export const maxNote = 65_536;

const logPattern = /^[A-Za-z0-9_-]{1,80}$/;

/** Throws TypeError for a name that could lead out of the witness's own place. */
export function checkLog(log: string): void {
  if (!logPattern.test(log)) throw new TypeError("witness: expected a log name of 1 to 80 of `A-Z a-z 0-9 _ -`");
}

/**
 * The comparison of a chain with a witness's latest note. `behind`: the chain is shorter than it was. `forked`: it is another
 * history, or its keys are not those it had. `unreadable`: the note is no checkpoint of the chain.
 */
export type WitnessResult =
  | { readonly verdict: "consistent" | "behind" | "forked"; readonly size: number }
  | { readonly verdict: "unreadable" };

/** Describes the contradiction for which a tenant is refused; undefined where the witness does not contradict. */
export function describeContradiction(
  result: WitnessResult,
  witness: string,
  { tenant, head }: ChainEnd,
): string | undefined {
  if (result.verdict !== "behind" && result.verdict !== "forked") return undefined;
  const { verdict, size } = result;
  const subject = `chain of tenant \`${tenant}\` is`;
  return verdict === "behind"
    ? `${subject} behind its witness \`${witness}\`: expected ${size} records, got ${head.seq + 1}`
    : `${subject} forked from its witness \`${witness}\` at or before record ${size - 1}`;
}

/** Compares a witness's note with the chain as it is. Rejects with TreeFault where the tree has a hole. */
export async function compareWithNote(
  note: string,
  end: ChainEnd,
  keys: KeyHistory,
  tree: TileReader,
): Promise<WitnessResult> {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === undefined || checkpoint.chain !== end.chain) return { verdict: "unreadable" };
  const { size } = checkpoint;
  if (size > end.head.seq + 1) return { verdict: "behind", size };
  if (!isCheckpointSignedBy(checkpoint, keys.keysAt(size))) return { verdict: "forked", size };
  return { verdict: (await tree.root(size)).equals(checkpoint.root) ? "consistent" : "forked", size };
}

/** The part of the ledger that a feed uses. */
export interface WitnessedLedger {
  status(): readonly ChainStatus[];
  /** Refuses a tenant from now on. */
  refuse(tenant: string, reason: string): void;
  /** Refuses to begin new chains from now on. */
  refuseNew(reason: string): void;
  /** The secret under which the states of a tenant's chain hide their values. */
  stateSecret(tenant: string): string;
}

export interface WitnessFeedOptions {
  readonly store: EvidenceStore;
  readonly ledger: WitnessedLedger;
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly random: Random;
}
