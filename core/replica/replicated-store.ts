import type { AbstractLevel } from "abstract-level";
import { Level } from "level";
import { GatewayError } from "../action/error.ts";
import type { EntryWrite, LeaseClaim, ReplicaDatabase } from "./database.ts";
import { batchOperations, bytesOf, catchUp, type Position } from "./local-copy.ts";

interface ReplicatedStoreOptions {
  readonly database: ReplicaDatabase;
  readonly claim: LeaseClaim;
  /** False where another replica may own the store by now. */
  readonly isHeld: () => boolean;
  /** Batches over which deletions stay listed: a copy that is further behind is read anew. Default 100,000. */
  readonly listedBatches?: number;
}

interface EncodedWrite {
  readonly type: "put" | "del";
  readonly key: string | Buffer;
  readonly value?: string | Buffer;
}

/** The part of `level` that an engine overrides. */
interface Engine {
  _open(options: object): Promise<void>;
  _put(key: string | Buffer, value: string | Buffer, options: object): Promise<void>;
  _del(key: string | Buffer, options: object): Promise<void>;
  _batch(operations: readonly EncodedWrite[], options: object): Promise<void>;
  _clear(options: object): Promise<void>;
  _chainedBatch(): object;
  compactRange(start: string, end: string): Promise<void>;
}

type EngineLevel = AbstractLevel<string | Buffer | Uint8Array, string, string> & Engine;
const EngineLevel = Level as unknown as new (folder: string, settings: object) => EngineLevel;
/** One for chained batches that comes down to `_batch`. */
const { _chainedBatch: chainArrayBatch } = Object.getPrototypeOf(Level.prototype) as Engine;

const defaultListedBatches = 100_000;
const clearedAtOnce = 1_000;
/** The database keeps it, and a copy that lost it reads it anew. */
const unsynced = { sync: false };

/**
 * The owner's store. Every write is committed in the database, under the owner's epoch, before it is in the local copy, and is
 * durable then; reads are the copy's. Opening brings the copy to where the database is: so after a write that failed, what
 * became of it is known once the store was closed and opened again. Where the database does not answer then, it opens for reading:
 * whoever reads before they write must come as far as to ask for the next repair.
 */
export class ReplicatedStore extends EngineLevel {
  readonly #folder: string;
  readonly #settings: object;
  readonly #options: ReplicatedStoreOptions;
  /** The place that the next batch follows; null where the copy may lack what was committed, until it is opened again. */
  #position: Position | null = null;
  #openCount = 0;
  /** False until it was brought up to date once. */
  #isKnown = false;
  /** The last write: the copy takes batches in the order in which the database committed them. */
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, settings: object, options: ReplicatedStoreOptions) {
    super(folder, settings);
    this.#folder = folder;
    this.#settings = settings;
    this.#options = options;
  }

  override async _open(options: object): Promise<void> {
    const { database, claim } = this.#options;
    this.#openCount++;
    const copy = new Level<string, string>(this.#folder, this.#settings);
    await copy.open();
    this.#position = null;
    try {
      this.#position = await catchUp(bytesOf(copy), database, claim);
      this.#isKnown = true;
    } catch (cause) {
      if (!this.#isKnown || !(cause instanceof GatewayError) || cause.code !== "EVIDENCE_UNAVAILABLE") throw cause;
    } finally {
      await copy.close();
    }
    await super._open(options);
  }

  override _put(key: string | Buffer, value: string | Buffer): Promise<void> {
    return this._batch([{ type: "put", key, value }]);
  }

  override _del(key: string | Buffer): Promise<void> {
    return this._batch([{ type: "del", key }]);
  }

  override _batch(operations: readonly EncodedWrite[]): Promise<void> {
    const writing = this.#writing.catch(() => undefined).then(() => this.#write(operations.map(toEntry)));
    this.#writing = writing;
    return writing;
  }

  override _chainedBatch(): object {
    return chainArrayBatch.call(this);
  }

  override async _clear(options: object): Promise<void> {
    await using keys = this.keys(options);
    for (;;) {
      const some = await keys.nextv(clearedAtOnce);
      if (some.length === 0) return;
      await this._batch(some.map((key) => ({ type: "del", key })));
    }
  }

  override async compactRange(start: string, end: string): Promise<void> {
    await super.compactRange(start, end);
    await this.#options.database.vacuum();
  }

  async #write(writes: readonly EntryWrite[]): Promise<void> {
    const { database, claim, isHeld, listedBatches = defaultListedBatches } = this.#options;
    const openCount = this.#openCount;
    if (writes.length === 0) return;
    if (!isHeld()) throw new GatewayError("EVIDENCE_UNAVAILABLE", "the lease of this replica has ended");
    const position = this.#position;
    if (position === null) throw new GatewayError("EVIDENCE_UNAVAILABLE", "the copy may lack what was committed");
    this.#position = null;
    const batch = await database.commit(claim, position.batch, writes);
    // COMMIT POINT: where the copy fails now, or was opened again meanwhile, opening it reads the batch from the database.
    if (this.#openCount !== openCount)
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "the store was opened again meanwhile");
    await super._batch(batchOperations(writes, position.database, batch), unsynced);
    if (this.#openCount === openCount) this.#position = { database: position.database, batch };
    // Nobody waits for it, and what fails now is done the next time.
    if (batch % listedBatches === 0) void database.forgetDeleted(claim, batch - listedBatches).catch(() => undefined);
  }
}

function toEntry({ key, value }: EncodedWrite): EntryWrite {
  return { key: Buffer.from(key), value: value === undefined ? null : Buffer.from(value) };
}
