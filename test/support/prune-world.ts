import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pruneApprovals } from "../../core/approval/history.ts";
import type { Pruned, PruneRequest, PruneTools } from "../../core/evidence/retention/retention.ts";
import { rewriteRange } from "../../core/store/rewrite.ts";
import { LedgerWorld } from "./ledger-world.ts";

/** Between the night, in which a world begins, and the day. */
export const before = "2026-05-02T00:00:00.000Z";

/** A ledger whose records are of the night until `wakeUp`, and of the day from then on. */
export class PruneWorld extends LedgerWorld {
  static override async create(): Promise<PruneWorld> {
    return new PruneWorld(await mkdtemp(join(tmpdir(), "prune-")));
  }

  wakeUp(): void {
    this.clock.nowMs = Date.parse(before);
  }

  async events(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.ledger.recordEvent("acme", "admin", {})));
  }

  async reopen(): Promise<void> {
    await this.close();
    await this.open();
  }

  /** Deletes what is of the night. */
  prune(over: Partial<PruneRequest> = {}, tenant = "acme", tools: Partial<PruneTools> = {}): Promise<Pruned> {
    const compact: PruneTools["compact"] = (range) => rewriteRange(this.store, range);
    const shelved = { store: this.store, journal: this.ledger.approvals };
    const forget = (firstKept: number): Promise<void> => pruneApprovals(shelved, tenant, firstKept);
    return this.ledger.prune(tenant, { before, by: "dpo", ...over }, { compact, forget, ...tools });
  }
}
