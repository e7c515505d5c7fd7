import { statSync } from "node:fs";
import { join } from "node:path";
import { AbstractLevel, AbstractSnapshot } from "abstract-level";
import { corruption } from "./damage.ts";
import { type Database, DatabasePair, type PairSettings, turnKey } from "./database-pair.ts";
import { DamageError } from "./file-window.ts";
import { journalFile } from "./folder.ts";
import { Journal, type JournalWrite } from "./journal.ts";
import {
  behindFamilies,
  firstFamilyKey,
  type KeyBounds,
  pieceFamily,
  type RecordFamily,
  recordFamilies,
  recordFamily,
  recordPlace,
  type StringLevel,
} from "./key-range.ts";
import { type RangePart, SplitIterator } from "./split-iterator.ts";

/** A key or a value as `AbstractLevel` hands it to an engine: in the format that was asked for. */
type Encoded = string | Buffer;

interface ReadOptions {
  /** The format of keys and values, `utf8` or `buffer`. */
  readonly keyEncoding: string;
  readonly valueEncoding: string;
  readonly snapshot?: SplitSnapshot;
}

interface RangeOptions extends ReadOptions {
  readonly gt?: Encoded;
  readonly gte?: Encoded;
  readonly lt?: Encoded;
  readonly lte?: Encoded;
  readonly reverse: boolean;
  readonly values: boolean;
  readonly highWaterMarkBytes?: number;
}

/** A write as an engine gets it. */
export interface EngineWrite {
  readonly type: "put" | "del";
  readonly key: Encoded;
  readonly value?: Encoded;
}

/** A snapshot goes with it, which the types of a database leave out. */
interface ReadForm {
  readonly valueEncoding: "buffer";
}

interface WriteOptions {
  readonly sync?: boolean;
}

interface Opened {
  readonly pair: DatabasePair;
  readonly journal: Journal;
}

/** Both databases as of one moment, until the last of its users gives it up. */
interface Moment {
  readonly records: AbstractSnapshot;
  readonly state: AbstractSnapshot;
  users: number;
}

/** Behind every key. */
const lastKey = "\x7f";
const clearedAtOnce = 1_000;

const manifest = {
  encodings: { buffer: true, utf8: true },
  explicitSnapshots: true,
  getSync: true,
  seek: false,
  additionalMethods: { approximateSize: true, compactRange: true },
};

// What an engine overrides is not in the types of `AbstractLevel`.
type EngineLevel = AbstractLevel<string | Buffer | Uint8Array, string, string>;
const EngineLevel = AbstractLevel as unknown as new (supported: object, settings: object) => EngineLevel;
const EngineSnapshot = AbstractSnapshot as unknown as new (options: object) => AbstractSnapshot;
interface IteratorMaker {
  _iterator(options: object): unknown;
}

/**
 * The engine on disk: a pair of databases, and a journal that has every batch first. So a batch is in both databases or in neither,
 * whatever happens, and a write is durable once it is in the journal.
 *
 * Once a write failed, every other one does, until it was closed and opened again: what became of the first is known then.
 */
export class SplitLevel extends EngineLevel {
  readonly #folder: string;
  #opened: Opened | null = null;
  /** The store before the batch that is being written. */
  #before: Moment | null = null;
  /** The last write. Once one rejects, all do that come after it. */
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, settings: object) {
    super(manifest, settings);
    this.#folder = folder;
  }

  async _open(settings: PairSettings): Promise<void> {
    const pair = await DatabasePair.open(this.#folder, settings);
    try {
      await pair.moveRecords(settings.onMoved);
      const parts = { path: join(this.#folder, journalFile), persist: () => pair.persist() };
      const journal = await Journal.open(parts, await pair.readTurn(), (writes) => pair.replay(writes));
      this.#opened = { pair, journal };
      this.#before = null;
      this.#writing = Promise.resolve();
    } catch (error) {
      await pair.close();
      const { offset, message: reason } = error as DamageError;
      throw error instanceof DamageError ? corruption({ file: journalFile, offset, reason }) : error;
    }
  }

  async _close(): Promise<void> {
    const isWritten = await this.#writing.then(
      () => true,
      () => false,
    );
    const { pair, journal } = this.#open;
    await journal.close(isWritten);
    await pair.close();
    this.#opened = null;
  }

  async _get(key: Encoded, options: ReadOptions): Promise<Buffer | undefined> {
    const [database, at] = this.#open.pair.place(key.toString());
    return database.get(at, readOptions(database, options));
  }

  _getSync(key: Encoded, options: ReadOptions): Buffer | undefined {
    const [database, at] = this.#open.pair.place(key.toString());
    return database.getSync(at, readOptions(database, options));
  }

  async _getMany(keys: readonly Encoded[], options: ReadOptions): Promise<(Buffer | undefined)[]> {
    const { pair } = this.#open;
    const values: (Buffer | undefined)[] = Array.from(keys, () => undefined);
    const places = keys.map((key) => pair.place(key.toString()));
    for (const database of [pair.records, pair.state]) {
      const own = [...places.keys()].filter((index) => places[index]?.[0] === database);
      if (own.length === 0) continue;
      const found = await database.getMany(
        own.map((index) => places[index]?.[1] ?? ""),
        readOptions(database, options),
      );
      for (const [order, index] of own.entries()) values[index] = found[order];
    }
    return values;
  }

  _put(key: Encoded, value: Encoded, options: WriteOptions): Promise<void> {
    return this._batch([{ type: "put", key, value }], options);
  }

  _del(key: Encoded, options: WriteOptions): Promise<void> {
    return this._batch([{ type: "del", key }], options);
  }

  _batch(operations: readonly EngineWrite[], { sync = false }: WriteOptions): Promise<void> {
    this.#writing = this.#write(operations, sync, this.#writing);
    return this.#writing;
  }

  async _clear(options: object): Promise<void> {
    await using keys = this.keys(options);
    for (;;) {
      const some = await keys.nextv(clearedAtOnce);
      if (some.length === 0) return;
      const writes = some.map((key) => ({ type: "del", key }) as const);
      await this._batch(writes, {});
    }
  }

  _snapshot(options: object): AbstractSnapshot {
    const { records, state } = this.#open.pair;
    const moment = this.#before ?? { records: records.snapshot(), state: state.snapshot(), users: 0 };
    return new SplitSnapshot(options, moment, this.#open.pair);
  }

  _iterator(options: RangeOptions): unknown {
    const { records, state } = this.#open.pair;
    const bounds = boundsOf(options);
    const [least, most] = [bounds.gt ?? bounds.gte ?? "", bounds.lt ?? bounds.lte ?? lastKey];
    // The database's own, which needs no other: all but a few ranges lie in it whole.
    if (most < firstFamilyKey || least >= behindFamilies) {
      return (state as unknown as IteratorMaker)._iterator({ ...options, ...readOptions(state, options) });
    }
    const parts: RangePart[] = [];
    const add = (database: Database, range: KeyBounds | undefined, family?: RecordFamily): void => {
      if (range !== undefined)
        parts.push({ family, entries: database.iterator(partOptions(database, options, range)) });
    };
    if (least < firstFamilyKey) add(state, { ...from(bounds), lt: firstFamilyKey });
    for (const family of recordFamilies) add(records, family.bounds(bounds), family);
    if (most > behindFamilies) add(state, { ...until(bounds), gte: behindFamilies });
    return new SplitIterator(this, options, options.reverse ? parts.reverse() : parts);
  }

  /** The bytes of a range in the tables, about; those of private fields count as their records', but for their pieces. */
  async approximateSize(start: string, end: string): Promise<number> {
    const { records, state } = this.#open.pair;
    if (recordPlace(start) === undefined) return state.approximateSize(start, end);
    const bounds = { gte: start, lt: end };
    const range = recordFamily.bounds(bounds) ?? pieceFamily.bounds(bounds);
    return range === undefined ? 0 : records.approximateSize(range.gte ?? "", range.lt ?? lastKey);
  }

  /** Rewrites the files that hold keys of the range; no value is in the journal then. An empty range brings down what is in memory. */
  async compactRange(start: string, end: string): Promise<void> {
    const { pair, journal } = this.#open;
    if (start < firstFamilyKey || end > behindFamilies) await pair.state.compactRange(start, end);
    for (const family of recordFamilies) {
      const range = family.bounds({ gte: start, lt: end });
      if (range !== undefined) await pair.records.compactRange(range.gte ?? "", range.lt ?? lastKey);
    }
    if (start >= end) return;
    this.#writing = this.#writing.then(() => journal.erase());
    await this.#writing;
  }

  get #open(): Opened {
    if (this.#opened !== null) return this.#opened;
    throw Object.assign(new Error("the store is not open"), { code: "LEVEL_DATABASE_NOT_OPEN" });
  }

  /** Writes a batch to the journal and then, not durably, to both databases, once the write before it is done. */
  async #write(operations: readonly EngineWrite[], sync: boolean, before: Promise<void>): Promise<void> {
    await before;
    const { pair, journal } = this.#opened as Opened;
    const [records, state] = [pair.records.batch(), pair.state.batch()];
    const writes: JournalWrite[] = [];
    for (const operation of operations) {
      const key = operation.key.toString();
      const value = typeof operation.value === "string" ? Buffer.from(operation.value) : (operation.value ?? null);
      writes.push({ key, value });
      const place = recordPlace(key);
      const batch = place === undefined ? state : records;
      if (value === null) batch.del(place ?? key);
      else batch.put(place ?? key, value as Buffer);
    }
    // Without the journal, a power cut could leave one of two writes and lose the other.
    const isDurable = sync || (records.length > 0 && state.length > 0);
    const turn = await journal.append(writes, isDurable);
    // COMMIT POINT: where a database fails now, the next opening writes the batch to it.
    if (isDurable) state.put(turnKey, Buffer.from(String(turn)));
    const moment = { records: pair.records.snapshot(), state: pair.state.snapshot(), users: 1 };
    this.#before = moment;
    // The records first, so that whoever reads what names one finds it.
    await records.write();
    await state.write();
    this.#before = null;
    if (--moment.users === 0) await Promise.all([moment.records.close(), moment.state.close()]);
  }
}

/** A moment of the store; one that is taken amid a write is that before it. */
class SplitSnapshot extends EngineSnapshot {
  readonly #moment: Moment;
  readonly #records: Database;

  constructor(options: object, moment: Moment, { records }: DatabasePair) {
    super(options);
    this.#moment = moment;
    this.#records = records;
    moment.users++;
  }

  of(database: Database): AbstractSnapshot {
    return database === this.#records ? this.#moment.records : this.#moment.state;
  }

  async _close(): Promise<void> {
    const { records, state } = this.#moment;
    if (--this.#moment.users === 0) await Promise.all([records.close(), state.close()]);
  }
}

function readOptions(database: Database, { valueEncoding, snapshot }: ReadOptions): ReadForm {
  const form = { valueEncoding: valueEncoding as ReadForm["valueEncoding"], snapshot: snapshot?.of(database) };
  return form;
}

/** Options for the entries of a part, of which the limit is counted outside. */
function partOptions(database: Database, options: RangeOptions, bounds: KeyBounds): object {
  const { reverse, values, highWaterMarkBytes } = options;
  return { ...readOptions(database, options), reverse, values, highWaterMarkBytes, ...bounds };
}

function boundsOf(options: RangeOptions): KeyBounds {
  const bounds: { -readonly [Bound in keyof KeyBounds]: KeyBounds[Bound] } = {};
  for (const name of ["gt", "gte", "lt", "lte"] as const) {
    const bound = options[name];
    if (bound !== undefined) bounds[name] = bound.toString();
  }
  return bounds;
}

function from({ gt, gte }: KeyBounds): KeyBounds {
  return gt === undefined ? { ...(gte !== undefined && { gte }) } : { gt };
}

function until({ lt, lte }: KeyBounds): KeyBounds {
  return lt === undefined ? { ...(lte !== undefined && { lte }) } : { lt };
}

/**
 * Returns a check whether the store's lock is still the one that was taken when it was opened.
 *
 * LevelDB locks a file and never looks at it again: once that file is removed or replaced, a second process can open the
 * same store, and each would overwrite what the other acknowledged. The check compares the identity of
 * the file, which is read whenever the store is opened. It always holds for a store in memory.
 */
export function lockWatch(store: StringLevel, dir: string, enabled: boolean): () => boolean {
  if (!enabled) return () => true;
  const path = join(dir, "state", "LOCK");
  const exactly = { bigint: true, throwIfNoEntry: false } as const;
  let taken = statSync(path, exactly);
  store.on("open", () => {
    taken = statSync(path, exactly);
  });
  return () => {
    const found = statSync(path, exactly);
    return found !== undefined && found.ino === taken?.ino && found.dev === taken.dev;
  };
}
