import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../../action/error.ts";
import { sealEntry } from "../private/private-field.ts";
import {
  approvalSummaryKey,
  checkpointAtKey,
  checkpointKey,
  durably,
  type EvidenceStore,
  recordKey,
  tileKey,
} from "../record/key-space.ts";
import { type NoteSigner, signCheckpoint } from "../tree/checkpoint.ts";
import { leafHash } from "../tree/merkle.ts";
import type { BatchThread } from "./batch-thread.ts";
import { type BatchValue, type BatchWrite, encodingOrder } from "./batch-value.ts";
import type { EvidenceChain } from "./chain-table.ts";
import type { HighWater, Mark } from "./high-water.ts";
import type { OuterMark } from "./outer-mark.ts";
import type { Sealed } from "./seal.ts";

/** The signature of a checkpoint that ends with a record. */
export interface LeafSignature {
  /** The chain's key, or both keys of a rotation. */
  readonly signers: readonly NoteSigner[];
  /** True keeps a checkpoint of exactly this size for good. */
  readonly keep: boolean;
}

/** A sealed record as a leaf of its chain's tree. */
interface Leaf extends LeafSignature {
  readonly chain: EvidenceChain;
  readonly seq: number;
  /** SHA-256 (hex) of the record's bytes. */
  readonly hash: string;
  readonly time: string;
  readonly isAboutApproval: boolean;
}

export interface GroupCommitOptions {
  readonly store: EvidenceStore;
  readonly highWater: HighWater;
  /** Raised with records about approvals. */
  readonly outerMark: Pick<OuterMark, "advance"> | null;
  /** False once another process may have opened the same store: nothing written from then on can be vouched for. */
  readonly holdsStore: () => boolean;
  /** Records that may wait for the disk. */
  readonly limit: number;
  /** Called once for each failed write, which rejects every waiting record. */
  readonly onFailure: (cause: unknown) => void;
  /** Called for each record that is refused because a write failed before. */
  readonly onRefused: () => void;
  readonly observer?: CommitObserver | undefined;
  /** Encodes large batches. Without it, every batch is encoded on the thread that commits. */
  readonly batchThread?: BatchThread | undefined;
}

/** Measures the disk. Must not throw. */
export interface CommitObserver {
  /** Returns milliseconds of a clock that only grows. */
  elapsedMs(): number;
  /** Called when a batch is durable, with the time that each of its records waited for it. */
  committed(waitedMs: readonly number[]): void;
  writeFailed(): void;
}

/** Records that share one atomic, synced batch. */
interface Group {
  /** The last value of each key; null deletes it. */
  readonly writes: Map<string, BatchValue | null>;
  /** Characters of the values that are no bytes yet, about. */
  size: number;
  readonly leaves: Leaf[];
  readonly arrivedMs: number[];
}

const maxGroup = 1_024;
/** Characters from which on a batch costs less on the other thread than handing it over. */
const minThreadSize = 16_384;
const asBytes = { valueEncoding: "buffer" } as const;

/**
 * Writes evidence; there is no other writer. Records that arrive while a batch is being written share the next one.
 * Batches are strictly serial, because the disk keeps no order between synced writes in flight together.
 * A batch is signed, then durable in the store with its signature, then in the high-water marks, then acknowledged.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  /** The newest group, for as long as it accepts records. */
  #open: Group | null = null;
  /** Resolves when the newest group is durable; null when nothing waits. */
  #written: Promise<void> | null = null;
  #waiting = 0;
  #failure: GatewayError | null = null;
  #isClosed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get failed(): boolean {
    return this.#failure !== null;
  }

  /**
   * Throws EVIDENCE_UNAVAILABLE where a record would not be accepted: after `close`, after a failed write, or because too
   * many wait. Outcomes pass the last test; the caller bounds those itself.
   */
  admit(kind: "bounded" | "outcome"): void {
    if (this.#isClosed) throw new GatewayError("EVIDENCE_UNAVAILABLE", "the ledger is closed");
    if (this.#failure !== null) {
      this.#options.onRefused();
      throw this.#failure;
    }
    if (kind === "bounded" && this.#waiting >= this.#options.limit) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#options.limit} records wait for the disk`);
    }
  }

  /**
   * Accepts a record that `admit` let pass in the same turn, as the head of its chain, and the writes that commit with it.
   * Resolves when it is durable; rejects with EVIDENCE_UNAVAILABLE when it may or may not be on disk.
   */
  submit(
    chain: EvidenceChain,
    sealed: Sealed,
    operations: readonly BatchWrite[],
    signature: LeafSignature = { signers: [chain.signer], keep: false },
  ): Promise<void> {
    const { group, written } = this.#join(operations);
    const { record, text, hash } = sealed;
    const { seq, time } = record;
    group.writes.set(recordKey(chain.tenant, seq), text);
    group.size += text.length;
    const isAboutApproval = record.kind === "approval" || (record.kind === "decision" && record.approval !== undefined);
    const summary =
      isAboutApproval || chain.approvals.states.size > 0 ? chain.approvals.take(sealed, chain.wrapping) : undefined;
    if (summary !== undefined) group.writes.set(approvalSummaryKey(chain.tenant), summary);
    group.leaves.push({ chain, seq, hash, time, isAboutApproval, ...signature });
    if (this.#options.observer !== undefined) group.arrivedMs.push(this.#options.observer.elapsedMs());
    this.#waiting++;
    chain.head = { seq, hash };
    return written;
  }

  /**
   * Accepts writes that belong to no record, after `admit` in the same turn. They come after those of the records that
   * were accepted before, and before those of later ones. Resolves and rejects as `submit` does.
   */
  submitWrites(operations: readonly BatchWrite[]): Promise<void> {
    const { written } = this.#join(operations);
    return written;
  }

  /** Accepts records again after a failure; the caller has read back the heads of the chains. */
  resume(): void {
    this.#failure = null;
  }

  /** Accepts nothing more; resolves when every accepted record is durable or rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#written?.catch(() => undefined);
  }

  /** Adds writes to the group that accepts records in this turn, and returns it; `written` resolves when it is durable. */
  #join(operations: readonly BatchWrite[]): { readonly group: Group; readonly written: Promise<void> } {
    if (this.#open === null || this.#written === null || this.#open.leaves.length >= maxGroup) {
      this.#open = { writes: new Map(), size: 0, leaves: [], arrivedMs: [] };
      this.#written = this.#write(this.#open, this.#written);
      // Each append awaits it itself; one that nobody awaits any more must not end the process.
      this.#written.catch(() => undefined);
    }
    const group = this.#open;
    for (const operation of operations) {
      const value = operation.type === "put" ? operation.value : null;
      group.writes.set(operation.key, value);
      if (typeof value === "string") group.size += value.length;
      else if (value !== null && "text" in value) group.size += value.text.length;
    }
    return { group, written: this.#written };
  }

  /** Writes a group once the one before it is durable; a group that follows a failed one is rejected with it. */
  async #write(group: Group, before: Promise<void> | null): Promise<void> {
    // The first waits one turn of the event loop: all requests read in this one share its batch.
    await (before ?? setImmediate());
    if (this.#open === group) this.#open = null;
    try {
      await this.#commit(group);
    } catch (cause) {
      throw this.#fail(cause);
    }
    this.#waiting -= group.leaves.length;
    if (this.#open === null) this.#written = null;
    const { observer } = this.#options;
    if (observer === undefined || group.leaves.length === 0) return;
    const nowMs = observer.elapsedMs();
    const waitedMs: number[] = [];
    for (const arrivedMs of group.arrivedMs) waitedMs.push(nowMs - arrivedMs);
    observer.committed(waitedMs);
  }

  async #commit(group: Group): Promise<void> {
    if (!this.#options.holdsStore()) throw lockLost();
    const { leaves } = group;
    const last = new Map<EvidenceChain, Leaf>();
    const guarded = new Set<EvidenceChain>();
    for (const leaf of leaves) {
      last.set(leaf.chain, leaf);
      if (leaf.isAboutApproval) guarded.add(leaf.chain);
    }
    for (const [key, note] of growTrees(leaves, last)) group.writes.set(key, note);
    const { writes } = group;
    const { batchThread: thread } = this.#options;
    const isShared = thread !== undefined && group.size >= minThreadSize && (await thread.takes(group.size));
    const values = isShared ? await thread.encode(encodingOrder(writes.values())) : undefined;
    let made = 0;
    // A chained batch: the array form clones each operation and costs ten times as much on this thread.
    const batch = this.#options.store.batch();
    for (const [key, value] of writes) {
      if (value === null) batch.del(key);
      else if (value instanceof Uint8Array) batch.put<string, Uint8Array>(key, value, asBytes);
      else if (values === undefined) batch.put(key, textOf(value));
      else batch.put<string, Uint8Array>(key, values[made++] as Uint8Array, asBytes);
    }
    await batch.write(durably);
    // COMMIT POINT: from here on the records survive; the marks make their loss visible.
    const marks: Mark[] = [];
    const outerMarks: Mark[] = [];
    for (const { chain, seq, hash } of last.values()) {
      const mark = { tenant: chain.tenant, chain: chain.id, seq, head: hash };
      marks.push(mark);
      if (guarded.has(chain)) outerMarks.push(mark);
    }
    await this.#options.highWater.advance(marks);
    if (outerMarks.length > 0) await this.#options.outerMark?.advance(outerMarks);
    // Again: a process that opened the store while this was written will overwrite it.
    if (!this.#options.holdsStore()) throw lockLost();
  }

  /** Everything that waits was sealed on top of what failed: none of it can stand. */
  #fail(cause: unknown): GatewayError {
    const failure = new GatewayError("EVIDENCE_UNAVAILABLE", "the last write failed; see the log", { cause });
    this.#failure = failure;
    this.#open = null;
    this.#written = null;
    this.#waiting = 0;
    this.#options.observer?.writeFailed();
    this.#options.onFailure(cause);
    return failure;
  }
}

/** Returns the text of a value. */
export function textOf(value: Exclude<BatchValue, Uint8Array>): string {
  if (typeof value === "string") return value;
  return "secret" in value ? sealEntry(value).toString("base64") : JSON.stringify(value);
}

function lockLost(): Error {
  return new Error("the lock of the store is no longer the one that was taken");
}

/**
 * Adds leaves to their trees in the order given and signs the head of each chain after them. Returns the keys and values
 * that belong into the batch of the records: full tiles, the latest checkpoint, and checkpoints that are kept.
 */
function growTrees(leaves: readonly Leaf[], last: ReadonlyMap<EvidenceChain, Leaf>): (readonly [string, string])[] {
  const entries: (readonly [string, string])[] = [];
  for (const leaf of leaves) {
    const { tenant, id: chain, tree } = leaf.chain;
    for (const { level, index, hashes } of tree.append(leafHash(leaf.hash))) {
      entries.push([tileKey(tenant, level, index), hashes.toString("hex")]);
    }
    const isLast = last.get(leaf.chain) === leaf;
    if (!isLast && !leaf.keep) continue;
    const { hash: head, time, signers } = leaf;
    const size = leaf.seq + 1;
    const { range } = tree;
    if (range.size !== size) throw new TypeError(`group commit: expected a tree of ${size} leaves, got ${range.size}`);
    const note = signCheckpoint({ chain, size, root: range.root(), head, time }, signers);
    if (isLast) entries.push([checkpointKey(tenant), note]);
    if (leaf.keep) entries.push([checkpointAtKey(tenant, size), note]);
  }
  return entries;
}
