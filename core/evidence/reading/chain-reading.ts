import type { Pace } from "../../store/pace.ts";
import type { Mark } from "../chain/high-water.ts";
import type { EvidenceStore } from "../record/key-space.ts";
import { StoreView } from "../record/store-view.ts";
import { type Cut, findCut } from "../retention/cut.ts";
import { findGoing, type GoingRecords } from "../retention/record-sweep.ts";
import type { PruneReading } from "../retention/retention.ts";
import type { RecordRules } from "../verify/record-rule.ts";
import { type VerifyReport, type VerifyWatch, verifyChain } from "../verify/verification.ts";

/** Reads every record of a chain, on whichever thread. */
export interface ChainReading extends PruneReading {
  /** See `verifyChain`. */
  verify(tenant: string, mark: Mark | undefined, watch: VerifyWatch): Promise<VerifyReport>;
}

/** Reads chains on this thread, at the pace it is told. */
export class LocalReading implements ChainReading {
  readonly #store: EvidenceStore;
  readonly #rules: RecordRules;

  constructor(store: EvidenceStore, rules: RecordRules) {
    this.#store = store;
    this.#rules = rules;
  }

  verify(tenant: string, mark: Mark | undefined, watch: VerifyWatch): Promise<VerifyReport> {
    return verifyChain(this.#store, tenant, mark, this.#rules, watch);
  }

  findCut(tenant: string, from: number, before: string, pace: Pace | undefined): Promise<Cut> {
    return findCut(new StoreView(this.#store), tenant, from, before, pace);
  }

  findGoing(
    tenant: string,
    firstKept: number,
    onGoing: (going: GoingRecords) => Promise<void>,
    pace: Pace | undefined,
  ): Promise<void> {
    return findGoing(new StoreView(this.#store), tenant, firstKept, onGoing, pace);
  }
}
