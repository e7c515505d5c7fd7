import type { ChainStatus } from "../evidence/chain-table.ts";
import type { Ledger } from "../evidence/ledger.ts";

/** How a tenant's evidence stands, in as few words as an overview has room for. */
export interface EvidenceStanding {
  /** Whether anything can be recorded, of any tenant. */
  readonly writable: boolean;
  /** −1 where nothing is recorded yet. */
  readonly seq: number;
  readonly state: ChainStatus["state"] | "none";
}

export function evidenceStanding(ledger: Pick<Ledger, "status" | "writable">, tenant: string): EvidenceStanding {
  const chain = ledger.status().find((each) => each.tenant === tenant);
  return { writable: ledger.writable, seq: chain?.seq ?? -1, state: chain?.state ?? "none" };
}
