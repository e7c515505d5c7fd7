import { GatewayError } from "../kernel/error.ts";
import type { Chain, ChainTable } from "./chain-table.ts";
import type { Compact } from "./erasure.ts";
import { type EvidenceStore, prunedKey, tenantRange } from "./key-space.ts";
import { PrunedPrefix, readFirstKept } from "./pruned-prefix.ts";
import { sweepPruned } from "./pruned-sweep.ts";
import { type Cut, findCut } from "./retention-cut.ts";
import { pruningDetail } from "./retention-rule.ts";
import { TileReader } from "./tile-reader.ts";
import type { VerifyReport } from "./verification.ts";
import type { Writer } from "./writer.ts";

export interface PruneRequest {
  /** Records of this time and later stay: RFC 3339, milliseconds, UTC. */
  readonly before: string;
  /** Who asked for it. */
  readonly by: string;
  readonly reason?: string | undefined;
}

export interface Pruned {
  /** Where the chain begins now; 0 for one that was never pruned. */
  readonly firstKept: number;
  /** Records that were deleted, those of an earlier attempt that had not come to its end included. */
  readonly records: number;
  /** The first record that is not older than asked for: later than `firstKept` where the cut had to keep more. */
  readonly firstYounger: number;
}

/** What a pruning needs of who asks for it. */
export interface PruneTools {
  readonly compact: Compact;
  /** Deletes what others keep about the records before the cut; resolves when that is durable. */
  readonly forget: (firstKept: number) => Promise<void>;
  readonly onProgress?: (done: number, what: "sound" | "deleted") => void;
}

export interface RetentionParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly writer: Writer;
  /** Throws EVIDENCE_UNAVAILABLE where a record would not be taken. */
  readonly admit: () => void;
  readonly verify: (tenant: string, onProgress?: (checked: number) => void) => Promise<VerifyReport>;
}

/** Deletes what is older than a tenant has to keep. What stays verifies as before: the tree keeps every leaf. */
export class Retention {
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /**
   * Deletes the records before a cut, as `findCut` chooses it; genesis, keys and some events stay. A `retention` record
   * and the hashes of what goes are durable before anything is deleted; when it resolves the bytes are gone from the
   * disk. After an error or a crash, ask again: it goes on where it ended. Nothing may be recorded meanwhile.
   * Throws NOT_FOUND for a tenant without evidence, EVIDENCE_UNAVAILABLE for a chain that is not sound, INVALID_PARAMS
   * where every record is older.
   */
  async prune(tenant: string, request: PruneRequest, { compact, forget, onProgress }: PruneTools): Promise<Pruned> {
    const { store, chains, writer, verify } = this.#parts;
    const chain = chains.get(tenant);
    // What is not sound is evidence of that: it must not go.
    const { firstBad: bad } = await verify(tenant, (checked) => onProgress?.(checked, "sound"));
    if (bad !== undefined) throw unsound(tenant, bad.seq, bad.detail);
    const from = await readFirstKept(store, tenant);
    const cut = await findCut(store, tenant, from, request.before);
    if (cut.firstYounger === null) throw nothingLeft(request.before);
    if (cut.removed > 0) await this.#announce(chain, cut, request);
    const firstKept = cut.removed > 0 ? cut.firstKept : from;
    // Any compaction begins with what lies in the log. Old values that reached the tables together with their deletion
    // would end in one file that no later compaction has a reason to rewrite.
    await compact({ gte: prunedKey(tenant), lt: `${prunedKey(tenant)}0` });
    const records = await sweepPruned(store, tenant, firstKept, (deleted) => onProgress?.(deleted, "deleted"));
    writer.forgetSessions();
    await forget(firstKept);
    // Where nothing was left to delete, too: an earlier attempt may have ended before this.
    if (firstKept > 0) await compact(tenantRange(tenant));
    return { firstKept, records, firstYounger: cut.firstYounger };
  }

  /** COMMIT POINT: from here on the records before the cut are about to go, and the chain says so. */
  async #announce(chain: Chain, { firstKept, removed }: Cut, { before, by, reason }: PruneRequest): Promise<void> {
    const { store, writer, admit } = this.#parts;
    const start = PrunedPrefix.edgeStart(firstKept);
    const edge = await new TileReader(store, chain.tenant).leaves(start, firstKept);
    const value = new PrunedPrefix(firstKept, edge).toText();
    const detail = pruningDetail({ before, firstKept, removed, by, reason });
    admit();
    await writer.appendEvent(chain, { kind: "retention", detail }, [
      { type: "put", key: prunedKey(chain.tenant), value },
    ]).durable;
  }
}

function unsound(tenant: string, seq: number, detail: string): GatewayError {
  return new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `chain of tenant \`${tenant}\` is broken at record ${seq}: ${detail}`,
  );
}

function nothingLeft(before: string): GatewayError {
  return new GatewayError(
    "INVALID_PARAMS",
    `every record is older than ${before}: nothing would be left; choose an earlier time`,
  );
}
