import type { Clock, Random } from "../kernel/port.ts";
import type { ChainStatus } from "./chain-table.ts";
import type { KeyStore } from "./key-folder.ts";
import type { EvidenceStore } from "./key-space.ts";

/** What a feed needs of the ledger. */
export interface WitnessedLedger {
  status(): readonly ChainStatus[];
  /** Refuses a tenant from now on. */
  refuse(tenant: string, reason: string): void;
  /** Lets no new chain begin from now on. */
  refuseNew(reason: string): void;
}

export interface WitnessFeedOptions {
  readonly store: EvidenceStore;
  readonly ledger: WitnessedLedger;
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly random: Random;
}
