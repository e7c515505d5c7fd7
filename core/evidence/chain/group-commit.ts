import { setImmediate } from "node:timers/promises";
import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { checkpointAtKey, checkpointKey, durably, type EvidenceStore, tileKey } from "../record/key-space.ts";
import { signCheckpoint } from "../tree/checkpoint.ts";
import type { FullTile } from "../tree/tile.ts";
import type { EvidenceChain } from "./chain-table.ts";
import type { HighWater, Mark } from "./high-water.ts";

/** One record's writes, and its leaf: what the mark and the checkpoint of its batch will say. */
interface Entry {
  readonly operations: readonly BatchOperation[];
  readonly leaf: Leaf;
}

export interface GroupCommitOptions {
  readonly store: EvidenceStore;
  readonly highWater: HighWater;
  /** False once another process may have opened the same store: then nothing written here can be vouched for. */
  readonly holdsStore: () => boolean;
  /** Entries that may wait for the disk. */
  readonly limit: number;
  /** Called once for each failed write, after every waiting entry was rejected. */
  readonly onFailure: (cause: unknown) => void;
  readonly observer?: CommitObserver | undefined;
}

/** Hears how the disk fares. Must not throw. */
export interface CommitObserver {
  /** Milliseconds that only grow. */
  elapsedMs(): number;
  /** A batch is durable; `waitedMs` is how long each of its records waited for that. */
  committed(waitedMs: readonly number[]): void;
  writeFailed(): void;
}

/** Entries that share one atomic, synced batch. */
interface Group {
  readonly operations: BatchOperation[];
  readonly leaves: Leaf[];
  /** When each of them came. */
  readonly cameMs: number[];
  readonly done: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
}

const maxGroup = 1_024;

/**
 * The only writer of evidence. Entries that arrive while a batch is on its way share the next one; batches are
 * strictly serial, because the disk keeps no order between synced writes in flight together.
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
   * Throws EVIDENCE_UNAVAILABLE where an entry would not be taken: a write failed, or too many wait.
   * `always` passes the second test; the caller bounds those by itself.
   */
  admit(always: boolean): void {
    if (this.#failure !== null) throw this.#failure;
    if (!always && this.#waiting >= this.#options.limit) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#options.limit} records wait for the disk`);
    }
  }

  /**
   * Takes an entry that `admit` let in, in the same turn. Resolves when it is durable; rejects with
   * EVIDENCE_UNAVAILABLE when that cannot be said: it may or may not be on disk.
   */
  submit(entry: Entry): Promise<void> {
    const group = this.#openGroup();
    for (const operation of entry.operations) group.operations.push(operation);
    group.leaves.push(entry.leaf);
    if (this.#options.observer !== undefined) group.cameMs.push(this.#options.observer.elapsedMs());
    this.#waiting++;
    this.#running ??= this.#run();
    return group.done;
  }

  /** Takes entries again after a failure; the caller has read back where the chains stand. */
  resume(): void {
    this.#failure = null;
  }

  /** Resolves when nothing waits. */
  async drain(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  #openGroup(): Group {
    const last = this.#groups.at(-1);
    if (last !== undefined && last.leaves.length < maxGroup) return last;
    const group = newGroup();
    this.#groups.push(group);
    return group;
  }

  async #run(): Promise<void> {
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
      this.#observe(group);
    }
    this.#running = null;
  }

  #observe({ cameMs }: Group): void {
    const { observer } = this.#options;
    const nowMs = observer?.elapsedMs() ?? 0;
    observer?.committed(cameMs.map((each) => nowMs - each));
  }

  async #commit(group: Group): Promise<void> {
    this.#checkHeld();
    // A chained batch: the array form clones each operation and costs ten times as much on this thread.
    const batch = this.#options.store.batch();
    for (const operation of [...group.operations, ...signBatch(group.leaves)]) {
      if (operation.type === "put") batch.put(operation.key, operation.value);
      else batch.del(operation.key);
    }
    await batch.write(durably);
    // COMMIT POINT: from here on the records survive; the marks make their loss visible.
    await this.#options.highWater.advance(marksOf(group.leaves).values());
    // Asked again: who opened the store while this was written will overwrite it.
    this.#checkHeld();
  }

  #checkHeld(): void {
    if (!this.#options.holdsStore()) throw new Error("the lock of the store is no longer the one that was taken");
  }

  /** What waits was sealed on top of what failed: none of it can stand. */
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
  // Each append awaits `done` by itself; one that nobody awaits any more must not end the process.
  done.catch(() => undefined);
  return { operations: [], leaves: [], cameMs: [], done, resolve, reject };
}

/** The last record of each tenant. */
function marksOf(leaves: readonly Leaf[]): ReadonlyMap<string, Mark> {
  return new Map(
    leaves.map(({ chain: { tenant, id }, seq, hash }) => [tenant, { tenant, chain: id, seq, head: hash }]),
  );
}

function unsettled(): never {
  throw new TypeError("group commit: settled before it was made");
}

/** A sealed record as a leaf of its chain's tree. */
export interface Leaf {
  readonly chain: EvidenceChain;
  readonly seq: number;
  /** SHA-256 (hex) of the record's bytes. */
  readonly hash: string;
  readonly time: string;
  /** Who signs a checkpoint that ends with this leaf: the chain's key, or both of a rotation. */
  readonly signers: readonly SigningKey[];
  /** Whether there must be a checkpoint of exactly this size, for good. */
  readonly keep: boolean;
}

/**
 * Adds leaves to their trees, in the order given, and signs where each chain stands after them. Returns what must be
 * written in the same batch as the records: the tiles that are full, the latest checkpoint, and those that stay.
 */
function signBatch(leaves: readonly Leaf[]): BatchOperation[] {
  const last = new Map(leaves.map((leaf) => [leaf.chain, leaf]));
  return leaves.flatMap((leaf) => {
    const operations = leaf.chain.tree.append(leaf.hash).map((tile) => putTile(leaf.chain.tenant, tile));
    const isLast = last.get(leaf.chain) === leaf;
    if (isLast || leaf.keep) operations.push(...putCheckpoint(leaf, isLast));
    return operations;
  });
}

function putTile(tenant: string, { level, index, hashes }: FullTile): BatchOperation {
  return { type: "put", key: tileKey(tenant, level, index), value: hashes.toString("hex") };
}

function putCheckpoint({ chain, seq, hash, time, signers, keep }: Leaf, isLast: boolean): BatchOperation[] {
  const size = seq + 1;
  if (chain.tree.size !== size)
    throw new TypeError(`attest: expected a tree of ${size} leaves, got ${chain.tree.size}`);
  const note = signCheckpoint({ chain: chain.id, size, root: chain.tree.root(), head: hash, time }, signers);
  const keys = [
    ...(isLast ? [checkpointKey(chain.tenant)] : []),
    ...(keep ? [checkpointAtKey(chain.tenant, size)] : []),
  ];
  return keys.map((key) => ({ type: "put", key, value: note }));
}
