import { GatewayError } from "../action/error.ts";
import { type EngineWrite, SplitLevel } from "../store/split-level.ts";
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

const defaultListedBatches = 100_000;
/** The database keeps it, and a copy that lost it reads it anew. */
const unsynced = { sync: false };

/**
 * The owner's store. Every write is committed in the database, under the owner's epoch, before it is in the local copy, and is
 * durable then; reads are the copy's. Opening brings the copy to where the database is: so after a write that failed, what
 * became of it is known once the store was closed and opened again. Where the database does not answer then, it opens for reading:
 * whoever reads before they write must come as far as to ask for the next repair.
 */
export class ReplicatedStore extends SplitLevel {
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

  override async _open(settings: object): Promise<void> {
    const { database, claim } = this.#options;
    this.#openCount++;
    const copy = new SplitLevel(this.#folder, this.#settings);
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
    await super._open(settings);
  }

  override _batch(operations: readonly EngineWrite[]): Promise<void> {
    const writing = this.#writing.catch(() => undefined).then(() => this.#write(operations.map(toEntry)));
    this.#writing = writing;
    return writing;
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

function toEntry({ key, value }: EngineWrite): EntryWrite {
  return { key: Buffer.from(key), value: value === undefined ? null : Buffer.from(value) };
}
