import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { recordsFolder, syncFolder } from "./folder.ts";
import { formatKey, singleFormats } from "./format.ts";
import type { JournalWrite } from "./journal.ts";
import { firstFamilyKey, recordPlace } from "./key-range.ts";

/** LevelDB, as its users in this folder see it. */
export type Database = Level<string, Buffer> & {
  approximateSize(start: string, end: string): Promise<number>;
  compactRange(start: string, end: string): Promise<void>;
};
const LevelDb = Level as unknown as new (folder: string, settings: object) => Database;

/** LevelDB's own settings, and: */
export interface PairSettings {
  /** Told now and then how many entries of an earlier version were moved to the database of the records. */
  readonly onMoved?: (entries: number) => void;
}

/** The last entry of the journal that is durable and was written to both. It lies between the families and what is behind them. */
export const turnKey = "}turn";

/** Less than the records have: what is overwritten merges with itself, and a start reads less back. */
const stateBufferBytes = 8_388_608;
const durably: object = { sync: true };
/** LevelDB takes it; the abstract interface does not name it. */
const chunkSize: object = { highWaterMarkBytes: 4_194_304 };
const maxMovedEntries = 2_000;

/**
 * Two LevelDB databases. One has the records with their private fields beside them: its keys only grow, so each of its tables is written
 * once. The other has all keys that are overwritten and deleted.
 */
export class DatabasePair {
  readonly records: Database;
  readonly state: Database;
  readonly #folder: string;

  private constructor(folder: string, settings: object) {
    const asBytes = { ...settings, keyEncoding: "utf8", valueEncoding: "buffer" };
    this.#folder = folder;
    this.state = new LevelDb(folder, { ...asBytes, writeBufferSize: stateBufferBytes });
    this.records = new LevelDb(join(folder, recordsFolder), asBytes);
  }

  /** Opens both in a folder. Throws the errors of the database. */
  static async open(folder: string, settings: PairSettings): Promise<DatabasePair> {
    const pair = new DatabasePair(folder, settings);
    try {
      // The first has the lock of the folder.
      await pair.state.open();
      await pair.records.open();
      return pair;
    } catch (error) {
      await pair.close();
      throw error;
    }
  }

  /** The database of a key, and the key in it. */
  place(key: string): readonly [database: Database, at: string] {
    const place = recordPlace(key);
    return place === undefined ? [this.state, key] : [this.records, place];
  }

  /** The last turn that was written; 0 for none. */
  async readTurn(): Promise<number> {
    return Number((await this.state.get(turnKey)) ?? 0);
  }

  /** Makes all that was written durable: LevelDB's logs lie in several files where one was full, and it syncs but the last. */
  async persist(): Promise<void> {
    await Promise.all([this.#folder, join(this.#folder, recordsFolder)].map(syncLogs));
  }

  async close(): Promise<void> {
    await this.records.close();
    await this.state.close();
  }

  /** Writes a batch of the journal again, each write by itself: what a power cut left of it does not matter. */
  async replay(writes: readonly JournalWrite[]): Promise<void> {
    for (const { key, value } of writes) {
      const [database, at] = this.place(key);
      await (value === null ? database.del(at) : database.put(at, value as Buffer));
    }
  }

  /** Moves the records of a version that kept all in one database. Goes on where it was interrupted. */
  async moveRecords(onMoved: (entries: number) => void = () => undefined): Promise<void> {
    const format = (await this.state.get(formatKey))?.toString() ?? "";
    if (!singleFormats.includes(format)) return;
    const range = { gte: firstFamilyKey, lt: turnKey };
    await using found = this.state.iterator({ ...range, ...chunkSize });
    for (let moved = 0; ; ) {
      const entries = await found.nextv(maxMovedEntries);
      if (entries.length === 0) break;
      await this.records.batch(
        entries.map(([key, value]) => ({ type: "put", key: recordPlace(key) as string, value })),
        durably,
      );
      await this.state.batch(entries.map(([key]) => ({ type: "del", key })));
      moved += entries.length;
      onMoved(moved);
    }
    await found.close();
    // Nothing is left in the files of where they lay: an erasure looks for private fields where they are.
    await this.state.compactRange(range.gte, range.lt);
  }
}

async function syncLogs(folder: string): Promise<void> {
  const logs = (await readdir(folder)).filter((name) => name.endsWith(".log"));
  await Promise.all(logs.map((name) => syncFile(join(folder, name))));
  await syncFolder(folder);
}

/** A log that is gone is in a table, which is durable. */
async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (file === undefined) return;
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}
