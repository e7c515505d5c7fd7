import { GatewayError } from "../../action/error.ts";
import type { KeyRange } from "../../store/key-range.ts";
import type { Pace } from "../../store/pace.ts";
import type { ChainTable, EvidenceChain } from "../chain/chain-table.ts";
import type { Writer } from "../chain/writer.ts";
import { type EvidenceStore, growingParts, partRange, prunedKey, recordKey, tenantRange } from "../record/key-space.ts";
import type { FirstBad } from "../record/reason.ts";
import { PrunedPrefix, readFirstKept } from "../tree/pruned-prefix.ts";
import { TileReader } from "../tree/tile-reader.ts";
import type { VerifyWatch } from "../verify/verification.ts";
import type { Cut } from "./cut.ts";
import type { Compact } from "./erasure.ts";
import type { GoingRecords } from "./record-sweep.ts";
import { pruningDetail } from "./retention-rule.ts";

export interface PruneRequest {
  /** Records of this time and later stay: RFC 3339, milliseconds, UTC. */
  readonly before: string;
  /** The person or tool that asked for it. */
  readonly by: string;
  readonly reason?: string | undefined;
}

export interface Pruned {
  /** The first record of the chain now; 0 for one that was never pruned. */
  readonly firstKept: number;
  /** Records that were deleted, those of an interrupted earlier attempt included. */
  readonly records: number;
  /** The first record that is not older than asked for: later than `firstKept` where the cut had to keep more. */
  readonly firstYounger: number;
}

/** The caller's part of a pruning. */
export interface PruneTools {
  readonly compact: Compact;
  /** Deletes the caller's own data about the records before the cut; resolves when that is durable. */
  readonly forget: (firstKept: number) => Promise<void>;
  readonly onProgress?: (done: number, what: "sound" | "deleted") => void;
  /** Absent in a process that serves no requests meanwhile. */
  readonly pace?: Pace;
}

/** The parts of a pruning that read every record, on whichever thread they do; see `findCut` and `findGoing`. */
export interface PruneReading {
  findCut(tenant: string, from: number, before: string, pace: Pace | undefined): Promise<Cut>;
  findGoing(
    tenant: string,
    firstKept: number,
    onGoing: (going: GoingRecords) => Promise<void>,
    pace: Pace | undefined,
  ): Promise<void>;
}

interface RetentionParts {
  readonly reading: PruneReading;
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly writer: Writer;
  readonly verify: (tenant: string, watch: VerifyWatch) => Promise<{ readonly firstBad?: FirstBad }>;
}

/** Deletes records older than a tenant has to keep. The rest verifies as before: the tree keeps every leaf. */
export class Retention {
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /**
   * Deletes the records before a cut, as `findCut` chooses it; genesis, keys and some events stay. A `retention` record
   * and the hashes of what goes are durable before anything is deleted; when it resolves the bytes are gone from the
   * disk. Records are appended meanwhile. An interrupted prune can be rerun; two of a tenant must not run at once.
   * Throws NOT_FOUND for a tenant without evidence, EVIDENCE_UNAVAILABLE for a chain that is not sound, INVALID_PARAMS
   * where every record is older, and the reason of the pace's signal, between two batches.
   */
  async prune(tenant: string, request: PruneRequest, tools: PruneTools): Promise<Pruned> {
    const { store, chains, reading, verify } = this.#parts;
    const { compact, forget, onProgress, pace } = tools;
    const chain = chains.get(tenant);
    // A broken chain is evidence of the damage: nothing of it may be deleted.
    const { firstBad: bad } = await verify(tenant, { pace, onProgress: (checked) => onProgress?.(checked, "sound") });
    if (bad !== undefined) throw unsound(tenant, bad.seq, bad.detail);
    const from = await readFirstKept(store, tenant);
    const cut = await reading.findCut(tenant, from, request.before, pace);
    if (cut.firstYounger === null) throw nothingLeft(request.before);
    if (cut.removed > 0) await this.#announce(chain, cut, request);
    const firstKept = cut.removed > 0 ? cut.firstKept : from;
    // Any compaction begins with what lies in the log. Old values that reached the tables together with their deletion
    // would end in one file that no later compaction has a reason to rewrite.
    await compact({ gte: prunedKey(tenant), lt: `${prunedKey(tenant)}0` });
    const records = await this.#sweep(tenant, firstKept, tools);
    await forget(firstKept);
    // Also where nothing was left to delete: an earlier attempt may have ended before this.
    for (const range of rangesBefore(tenant, firstKept)) {
      await compact(range);
      await pace?.rest();
    }
    return { firstKept, records, firstYounger: cut.firstYounger };
  }

  /** Deletes every record before the cut that is not kept. Returns their number. */
  async #sweep(tenant: string, firstKept: number, { onProgress, pace }: PruneTools): Promise<number> {
    const { reading, writer } = this.#parts;
    let deleted = 0;
    const remove = async ({ count, keys, lasts }: GoingRecords): Promise<void> => {
      await writer.deleteRecords(keys, lasts);
      deleted += count;
      onProgress?.(deleted, "deleted");
    };
    await reading.findGoing(tenant, firstKept, remove, pace);
    return deleted;
  }

  /** COMMIT POINT: from here on the records before the cut are going to be deleted, and the chain records it. */
  async #announce(
    chain: EvidenceChain,
    { firstKept, removed }: Cut,
    { before, by, reason }: PruneRequest,
  ): Promise<void> {
    const { store, writer } = this.#parts;
    const start = PrunedPrefix.edgeStart(firstKept);
    const edge = await new TileReader(store, chain.tenant).leaves(start, firstKept);
    const value = new PrunedPrefix(firstKept, edge).toText();
    const detail = pruningDetail({ before, firstKept, removed, by, reason });
    writer.commit.admit("bounded");
    await writer.appendEvent(chain, { kind: "retention", detail }, [
      { type: "put", key: prunedKey(chain.tenant), value },
    ]);
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

const recordsPerRange = 16_384;

/**
 * The ranges that a pruning deleted from: every key of the tenant but the records from `firstKept` on, in ranges of some megabytes.
 */
function rangesBefore(tenant: string, firstKept: number): readonly KeyRange[] {
  if (firstKept === 0) return [];
  const whole = tenantRange(tenant);
  const ranges: KeyRange[] = [];
  let { gte } = whole;
  for (const part of growingParts.toSorted()) {
    const { gte: first, lt: end } = partRange(tenant, part);
    const isAmongOthers = whole.gte <= first && end <= whole.lt;
    let from = isAmongOthers ? gte : first;
    for (let seq = 0; seq < firstKept; seq += recordsPerRange) {
      const lt = recordKey(tenant, Math.min(seq + recordsPerRange, firstKept), part);
      ranges.push({ gte: from, lt });
      from = lt;
    }
    if (isAmongOthers) gte = end;
  }
  return [...ranges, { gte, lt: whole.lt }];
}
