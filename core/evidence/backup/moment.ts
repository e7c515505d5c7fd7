import type { AbstractSnapshot } from "abstract-level";
import { GatewayError } from "../../kernel/error.ts";
import type { ChainStatus } from "../chain-table.ts";
import { emptyHead } from "../chain-walk.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import type { Mark } from "../high-water.ts";
import { checkpointKey, type EvidenceStore } from "../key-space.ts";
import { StoreView } from "../store-view.ts";

/** The store at one moment, and where every chain stood then. */
export interface Moment {
  readonly snapshot: AbstractSnapshot;
  readonly chains: readonly ChainStatus[];
}

/**
 * Holds the moment. Both are read in one turn of the event loop: no chain begins in between.
 * Throws EVIDENCE_UNAVAILABLE while records cannot be written, or a chain is not sound: nobody could restore that.
 */
export function holdMoment(store: EvidenceStore, status: () => readonly ChainStatus[]): Moment {
  const chains = status();
  if (chains.some(({ state }) => state !== "ready")) {
    throw new GatewayError(
      "EVIDENCE_UNAVAILABLE",
      "a chain is not sound: `gateway evidence verify` says which, and why",
    );
  }
  return { snapshot: store.snapshot(), chains };
}

/**
 * The high-water mark of every chain as of the moment: its checkpoint is in one batch with its last record. A chain
 * without one was named, and held nothing yet.
 */
export async function marksAt(store: EvidenceStore, { snapshot, chains }: Moment): Promise<readonly Mark[]> {
  const view = new StoreView(store, snapshot);
  const marks: Mark[] = [];
  for (const { tenant, chain } of chains) {
    const note = await view.get(checkpointKey(tenant));
    const checkpoint = note === undefined ? undefined : parseCheckpoint(note);
    if (note !== undefined && checkpoint?.chain !== chain) throw new Error("a chain's checkpoint is not its own");
    const head = checkpoint === undefined ? emptyHead : { seq: checkpoint.size - 1, hash: checkpoint.head };
    marks.push({ tenant, chain, seq: head.seq, head: head.hash });
  }
  return marks;
}
