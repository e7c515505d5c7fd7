import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { ChainTable, EvidenceChain } from "../chain/chain-table.ts";
import { parseSessionSummary } from "../chain/session-record.ts";
import type { Writer } from "../chain/writer.ts";
import {
  durably,
  type EvidenceStore,
  eventKey,
  prunedKey,
  recordKey,
  recordRange,
  sessionKey,
  sessionOrderKey,
  tenantRange,
} from "../record/key-space.ts";
import type { FirstBad } from "../record/reason.ts";
import type { ActionRecord, EventRecord, EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import { PrunedPrefix, readFirstKept } from "../tree/pruned-prefix.ts";
import { TileReader } from "../tree/tile-reader.ts";
import type { Compact } from "./erasure.ts";
import { isKept, pruningDetail } from "./retention-rule.ts";

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
}

interface RetentionParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly writer: Writer;
  readonly verify: (tenant: string, onProgress: (checked: number) => void) => Promise<{ readonly firstBad?: FirstBad }>;
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
   * disk. An interrupted prune can be rerun. Nothing may be recorded meanwhile.
   * Throws NOT_FOUND for a tenant without evidence, EVIDENCE_UNAVAILABLE for a chain that is not sound, INVALID_PARAMS
   * where every record is older.
   */
  async prune(tenant: string, request: PruneRequest, { compact, forget, onProgress }: PruneTools): Promise<Pruned> {
    const { store, chains, writer, verify } = this.#parts;
    const chain = chains.get(tenant);
    // A broken chain is evidence of the damage: nothing of it may be deleted.
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
    // Also where nothing was left to delete: an earlier attempt may have ended before this.
    if (firstKept > 0) await compact(tenantRange(tenant));
    return { firstKept, records, firstYounger: cut.firstYounger };
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

const atOnce = 256;

/**
 * Deletes every record before the cut that is not kept, with its private fields and its index entries. Each batch
 * leaves the rest sound, so that an interrupted prune can be rerun. Returns the number of deleted records.
 */
async function sweepPruned(
  store: EvidenceStore,
  tenant: string,
  firstKept: number,
  onProgress: (deleted: number) => void,
): Promise<number> {
  const sweep = new Sweep(store, tenant, firstKept);
  let deleted = 0;
  let gte = recordKey(tenant, 0);
  for (;;) {
    const texts = await store.values({ gte, lt: recordKey(tenant, firstKept), limit: atOnce }).all();
    const records = texts.map((text) => JSON.parse(text) as EvidenceRecord);
    const last = records.at(-1);
    if (last === undefined) return deleted;
    const going = records.filter((record) => !isKept(record));
    if (going.length > 0) await store.batch(await sweep.operations(going), durably);
    deleted += going.length;
    onProgress(deleted);
    gte = recordKey(tenant, last.seq + 1);
  }
}

class Sweep {
  readonly #store: EvidenceStore;
  readonly #tenant: string;
  readonly #firstKept: number;

  constructor(store: EvidenceStore, tenant: string, firstKept: number) {
    this.#store = store;
    this.#tenant = tenant;
    this.#firstKept = firstKept;
  }

  async operations(records: readonly EvidenceRecord[]): Promise<BatchOperation[]> {
    return (await Promise.all(records.map((record) => this.#forget(record)))).flat();
  }

  async #forget(record: EvidenceRecord): Promise<BatchOperation[]> {
    const { kind, seq } = record;
    const more = isAction(record)
      ? await this.#forgetAction(record)
      : [this.#delete(eventKey(this.#tenant, kind, seq))];
    return [this.#delete(recordKey(this.#tenant, seq)), ...more];
  }

  /**
   * Keeps the last entry before the cut of a session that continues after it: the next record is checked by what it
   * leads to. The session is deleted with its last record, and not before, so that it cannot begin anew meanwhile.
   */
  async #forgetAction({ seq, session: { id, index } }: ActionRecord): Promise<BatchOperation[]> {
    const indexAt = (at: number): string => sessionKey(this.#tenant, id, at);
    const operations = (["disclosure", "data-key", "held"] as const).map((part) => recordKey(this.#tenant, seq, part));
    if (index > 0) operations.push(indexAt(index - 1));
    const next = await this.#store.get(indexAt(index + 1));
    if (next === undefined || Number(next) < this.#firstKept) operations.push(indexAt(index));
    const key = sessionKey(this.#tenant, id);
    const summary = parseSessionSummary((await this.#store.get(key)) ?? "");
    if (summary?.last_seq === seq) operations.push(key, sessionOrderKey(this.#tenant, summary.first_seq));
    return operations.map((each) => this.#delete(each));
  }

  #delete(key: string): BatchOperation {
    return { type: "del", key };
  }
}

/** A place at which a chain may be cut. */
export interface Cut {
  /** The first record that is kept together with all that follow. */
  readonly firstKept: number;
  /** Records before it that are deleted. */
  readonly removed: number;
  /** The first record that is not older than asked for; null where all are older. */
  readonly firstYounger: number | null;
}

/** Beyond this many unfinished actions and approvals, the search stops: the cut stays before them. */
const maxUnfinished = 100_000;

/**
 * The latest cut, at `from` or after it, before the first record that is not older than `before`, that goes through no
 * action and no approval. Reads the records from `from` on that are older, one after another.
 */
export async function findCut(store: EvidenceStore, tenant: string, from: number, before: string): Promise<Cut> {
  const unfinished = new Unfinished();
  let cut = { firstKept: from, removed: 0 };
  let removed = 0;
  for await (const text of store.values({ ...recordRange(tenant), gte: recordKey(tenant, from) })) {
    const record = JSON.parse(text) as EvidenceRecord;
    if (record.time >= before) return { ...cut, firstYounger: record.seq };
    unfinished.take(record);
    if (!isKept(record)) removed++;
    if (unfinished.count === 0) cut = { firstKept: record.seq + 1, removed };
    if (unfinished.count > maxUnfinished) return { ...cut, firstYounger: record.seq };
  }
  return { ...cut, firstYounger: null };
}

interface OpenApproval {
  isOver: boolean;
  /** Break-glass was used, and its post-mortem is missing. */
  owesPostMortem: boolean;
}

/**
 * Actions and approvals of the records so far that later records may continue: actions without outcome, and approvals from the
 * decision that was held to their end, or to the post-mortem where break-glass was used.
 */
class Unfinished {
  readonly #actions = new Set<string>();
  readonly #approvals = new Map<string, OpenApproval>();

  get count(): number {
    return this.#actions.size + this.#approvals.size;
  }

  take(record: EvidenceRecord): void {
    if (isAction(record)) this.#takeAction(record);
    else if (record.kind === "approval") this.#takeApproval(record.detail);
  }

  #takeAction({ action, approval, effect, kind }: ActionRecord): void {
    if (kind === "outcome") this.#actions.delete(action.id);
    else if (effect === "dispatched") this.#actions.add(action.id);
    if (approval?.state === "pending") this.#open(approval.id);
    if (approval?.state === "consumed") this.#end(approval.id);
  }

  #takeApproval({ break_glass, event, id }: EventRecord["detail"]): void {
    if (typeof id !== "string") return;
    if (event === "denied" || event === "expired") this.#end(id);
    else if (event === "post_mortem") this.#account(id);
    else if (break_glass === undefined) this.#open(id);
    else this.#open(id).owesPostMortem = true;
  }

  #open(id: string): OpenApproval {
    const approval = this.#approvals.get(id) ?? { isOver: false, owesPostMortem: false };
    this.#approvals.set(id, approval);
    return approval;
  }

  #end(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval !== undefined) approval.isOver = true;
    this.#forgetFinished(id);
  }

  #account(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval !== undefined) approval.owesPostMortem = false;
    this.#forgetFinished(id);
  }

  #forgetFinished(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval?.isOver && !approval.owesPostMortem) this.#approvals.delete(id);
  }
}
