import { setImmediate } from "node:timers/promises";
import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { checkpointAtKey, checkpointKey, durably, type EvidenceStore, tileKey } from "../record/key-space.ts";
import { signCheckpoint } from "../tree/checkpoint.ts";
import { leafHash } from "../tree/merkle.ts";
import type { EvidenceChain } from "./chain-table.ts";
import type { HighWater, Mark } from "./high-water.ts";

/** A sealed record as a leaf of its chain's tree. */
export interface Leaf {
  readonly chain: EvidenceChain;
  readonly seq: number;
  /** SHA-256 (hex) of the record's bytes. */
  readonly hash: string;
  readonly time: string;
  /** The signers of a checkpoint that ends with this leaf: the chain's key, or both keys of a rotation. */
  readonly signers: readonly SigningKey[];
  /** True keeps a checkpoint of exactly this size for good. */
  readonly keep: boolean;
}

/** The writes of one record, and its leaf. */
interface Entry {
  readonly operations: readonly BatchOperation[];
  readonly leaf: Leaf;
}

export interface GroupCommitOptions {
  readonly store: EvidenceStore;
  readonly highWater: HighWater;
  /** False once another process may have opened the same store: nothing written from then on can be vouched for. */
  readonly holdsStore: () => boolean;
  /** Entries that may wait for the disk. */
  readonly limit: number;
  /** Called once for each failed write, after every waiting entry was rejected. */
  readonly onFailure: (cause: unknown) => void;
  /** Called for each entry that is refused because a write failed before. */
  readonly onRefused: () => void;
  readonly observer?: CommitObserver | undefined;
}

/** Measures the disk. Must not throw. */
export interface CommitObserver {
  /** Returns milliseconds of a clock that only grows. */
  elapsedMs(): number;
  /** Called when a batch is durable, with the time that each of its records waited for it. */
  committed(waitedMs: readonly number[]): void;
  writeFailed(): void;
}

/** Entries that share one atomic, synced batch. */
interface Group {
  readonly operations: BatchOperation[];
  readonly leaves: Leaf[];
  readonly arrivedMs: number[];
  readonly done: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
}

const maxGroup = 1_024;

/**
 * Writes evidence; there is no other writer. Entries that arrive while a batch is being written share the next one.
 * Batches are strictly serial, because the disk keeps no order between synced writes in flight together.
 * A batch is signed, then durable in the store with its signature, then in the high-water marks, then acknowledged.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #groups: Group[] = [];
  #waiting = 0;
  #running: Promise<void> | null = null;
  #failure: GatewayError | null = null;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get failed(): boolean {
    return this.#failure !== null;
  }

  /**
   * Throws EVIDENCE_UNAVAILABLE where an entry would not be accepted: a write failed, or too many wait.
   * `always` passes the second test; the caller bounds those itself.
   */
  admit(always: boolean): void {
    if (this.#failure !== null) {
      this.#options.onRefused();
      throw this.#failure;
    }
    if (!always && this.#waiting >= this.#options.limit) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#options.limit} records wait for the disk`);
    }
  }

  /**
   * Accepts an entry that `admit` let pass in the same turn. Resolves when it is durable; rejects with
   * EVIDENCE_UNAVAILABLE when it may or may not be on disk.
   */
  submit({ operations, leaf }: Entry): Promise<void> {
    let group = this.#groups.at(-1);
    if (group === undefined || group.leaves.length >= maxGroup) {
      group = newGroup();
      this.#groups.push(group);
    }
    for (const operation of operations) group.operations.push(operation);
    group.leaves.push(leaf);
    if (this.#options.observer !== undefined) group.arrivedMs.push(this.#options.observer.elapsedMs());
    this.#waiting++;
    this.#running ??= this.#run();
    return group.done;
  }

  /** Accepts entries again after a failure; the caller has read back the heads of the chains. */
  resume(): void {
    this.#failure = null;
  }

  /** Resolves when nothing waits. */
  async drain(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    const { observer } = this.#options;
    // One turn of the event loop: all requests read in this one share the first batch.
    await setImmediate();
    for (let group = this.#groups.shift(); group !== undefined; group = this.#groups.shift()) {
      try {
        await this.#commit(group);
      } catch (cause) {
        this.#fail(group, cause);
        break;
      }
      this.#waiting -= group.leaves.length;
      group.resolve();
      if (observer === undefined) continue;
      const nowMs = observer.elapsedMs();
      const waitedMs: number[] = [];
      for (const arrivedMs of group.arrivedMs) waitedMs.push(nowMs - arrivedMs);
      observer.committed(waitedMs);
    }
    this.#running = null;
  }

  async #commit({ operations, leaves }: Group): Promise<void> {
    this.#checkHeld();
    const last = new Map<EvidenceChain, Leaf>();
    for (const leaf of leaves) last.set(leaf.chain, leaf);
    // A chained batch: the array form clones each operation and costs ten times as much on this thread.
    const batch = this.#options.store.batch();
    for (const operation of operations) {
      if (operation.type === "put") batch.put(operation.key, operation.value);
      else batch.del(operation.key);
    }
    for (const [key, value] of growTrees(leaves, last)) batch.put(key, value);
    await batch.write(durably);
    // COMMIT POINT: from here on the records survive; the marks make their loss visible.
    const marks: Mark[] = [];
    for (const { chain, seq, hash } of last.values()) {
      marks.push({ tenant: chain.tenant, chain: chain.id, seq, head: hash });
    }
    await this.#options.highWater.advance(marks);
    // Again: a process that opened the store while this was written will overwrite it.
    this.#checkHeld();
  }

  #checkHeld(): void {
    if (!this.#options.holdsStore()) throw new Error("the lock of the store is no longer the one that was taken");
  }

  /** Everything that waits was sealed on top of what failed: none of it can stand. */
  #fail(group: Group, cause: unknown): void {
    const failure = new GatewayError("EVIDENCE_UNAVAILABLE", "the last write failed; see the log", { cause });
    const lost = [group, ...this.#groups];
    this.#failure = failure;
    this.#groups = [];
    this.#waiting = 0;
    for (const each of lost) each.reject(failure);
    this.#options.observer?.writeFailed();
    this.#options.onFailure(cause);
  }
}

function newGroup(): Group {
  let resolve: () => void = unsettled;
  let reject: (error: GatewayError) => void = unsettled;
  const done = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  // Each append awaits `done` itself; one that nobody awaits any more must not end the process.
  done.catch(() => undefined);
  return { operations: [], leaves: [], arrivedMs: [], done, resolve, reject };
}

function unsettled(): never {
  throw new TypeError("group commit: settled before it was created");
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
    if (tree.size !== size) throw new TypeError(`group commit: expected a tree of ${size} leaves, got ${tree.size}`);
    const note = signCheckpoint({ chain, size, root: tree.root(), head, time }, signers);
    if (isLast) entries.push([checkpointKey(tenant), note]);
    if (leaf.keep) entries.push([checkpointAtKey(tenant, size), note]);
  }
  return entries;
}
