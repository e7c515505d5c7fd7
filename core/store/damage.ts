import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DamageError, FileWindow } from "./file-window.ts";
import { recordsFolder } from "./folder.ts";
import { checkLogFile } from "./log-file.ts";
import { readManifest, type StoreLayout } from "./manifest.ts";
import { checkTableFile } from "./table-file.ts";

/** A fault in the files of a store. */
export interface Damage {
  readonly file: string;
  /** Bytes of the file before the fault. */
  readonly offset: number;
  readonly reason: string;
}

/** Returns a damage as the database's own error of that kind. */
export function corruption({ file, offset, reason }: Damage): Error {
  return Object.assign(new Error(`${file}, byte ${offset}: ${reason}`), { code: "LEVEL_CORRUPTION" });
}

/** The part of a store that is read to check it. Logs and the manifest always are, whole. */
export interface CheckExtent {
  /** Tables of which every block is read, the newest first, until they have so many bytes together. */
  readonly wholeBytes: number;
  /** Tables, the newest first, of which at least the footer, index, metaindex and filter are read. */
  readonly tables: number;
}

/** Every byte of every file. */
export const everything: CheckExtent = {
  wholeBytes: Number.POSITIVE_INFINITY,
  tables: Number.POSITIVE_INFINITY,
};

/** Bounds a start: a fraction of a second, however much is stored. Of each database. */
export const newestPart: CheckExtent = { wholeBytes: 33_554_432, tables: 512 };

/**
 * Returns the first damage in the files of a store's databases, undefined where there is none: a block or record whose
 * checksum does not fit, and a file that is missing or of another size than the manifest says. LevelDB checks no block
 * that it reads, and ends the process at some. The journal checks itself when it is opened.
 *
 * Holds a mebibyte and an index in memory. The folder may be in use meanwhile. Rejects where it cannot be read.
 */
export async function findDamage(folder: string, extent: CheckExtent): Promise<Damage | undefined> {
  const state = await findIn(folder, extent);
  if (state !== undefined || !(await readdir(folder)).includes(recordsFolder)) return state;
  const records = await findIn(join(folder, recordsFolder), extent);
  return records && { ...records, file: join(recordsFolder, records.file) };
}

/** Returns the first damage in one database. */
async function findIn(folder: string, extent: CheckExtent): Promise<Damage | undefined> {
  try {
    await new StoreCheck(folder).run(extent);
    return undefined;
  } catch (error) {
    if (error instanceof FoundDamage) return error.damage;
    throw error;
  }
}

class FoundDamage extends Error {
  readonly damage: Damage;

  constructor(damage: Damage) {
    super(damage.reason);
    this.damage = damage;
  }
}

class StoreCheck {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async run(extent: CheckExtent): Promise<void> {
    const layout = await this.#readLayout();
    if (layout === undefined) return this.#checkNew();
    // After the layout: a table that is new by now is not in it.
    const names = await readdir(this.#folder);
    await this.#checkLogs(names, layout);
    await this.#checkTables(names, layout, extent);
  }

  /** Returns undefined where no file says which manifest is in force. */
  async #readLayout(): Promise<StoreLayout | undefined> {
    const current = await readFile(join(this.#folder, "CURRENT"), "latin1").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (current === undefined) return undefined;
    const name = /^(MANIFEST-\d+)\n$/.exec(current)?.[1];
    if (name === undefined) {
      throw new FoundDamage({ file: "CURRENT", offset: 0, reason: "it does not name a manifest" });
    }
    return this.#read(name, readManifest);
  }

  /** LevelDB would begin a new store, and delete the files of the one that was there. */
  async #checkNew(): Promise<void> {
    const held = (await readdir(this.#folder)).find((name) => /\.(?:ldb|sst|log)$/.test(name));
    if (held === undefined) return;
    throw new FoundDamage({ file: "CURRENT", offset: 0, reason: `it is missing beside \`${held}\`` });
  }

  async #checkLogs(names: readonly string[], { log, formerLog }: StoreLayout): Promise<void> {
    const logs = names.filter((name) => /^\d+\.log$/.test(name)).sort();
    const live = logs.filter((name) => numberOf(name) >= log || numberOf(name) === formerLog);
    if (log > 0 && !live.some((name) => numberOf(name) >= log)) {
      const file = `${String(log).padStart(6, "0")}.log`;
      await this.#orMoved(
        () => Promise.reject(missing(file)),
        ({ log: now }) => now === log,
      );
    }
    for (const name of live) {
      await this.#orMoved(
        () => this.#read(name, (file) => checkLogFile(file, "batches")),
        ({ log: now }) => now <= numberOf(name),
      );
    }
  }

  async #checkTables(names: readonly string[], { tables }: StoreLayout, extent: CheckExtent): Promise<void> {
    const there = new Set(names);
    const newestFirst = [...tables].sort(([one], [other]) => other - one);
    let { wholeBytes } = extent;
    for (const [index, [number, size]] of newestFirst.entries()) {
      const stem = String(number).padStart(6, "0");
      const name = there.has(`${stem}.sst`) ? `${stem}.sst` : `${stem}.ldb`;
      wholeBytes -= size;
      await this.#orMoved(
        async () => {
          if (!there.has(name)) throw missing(name);
          if (index < extent.tables) await this.#checkTable(name, size, wholeBytes >= 0);
        },
        (now) => now.tables.has(number),
      );
    }
  }

  #checkTable(name: string, size: number, isWhole: boolean): Promise<void> {
    return this.#read(name, async (file) => {
      if (file.size !== size) throw new DamageError(file.size, `expected ${size} bytes, got ${file.size}`);
      await checkTableFile(file, isWhole);
    });
  }

  /** Runs `check`. A fault in a file that was given up meanwhile, by whoever uses the store, is none. */
  async #orMoved(check: () => Promise<void>, isLive: (layout: StoreLayout) => boolean): Promise<void> {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof FoundDamage)) throw error;
      const now = await this.#readLayout();
      if (now === undefined || isLive(now)) throw error;
    }
  }

  async #read<T>(name: string, use: (file: FileWindow) => Promise<T>): Promise<T> {
    try {
      return await FileWindow.read(join(this.#folder, name), use);
    } catch (error) {
      if (error instanceof DamageError) {
        throw new FoundDamage({ file: name, offset: error.offset, reason: error.message });
      }
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") throw missing(name);
      if (code === "EIO") throw new FoundDamage({ file: name, offset: 0, reason: "the disk cannot read it" });
      throw error;
    }
  }
}

function numberOf(name: string): number {
  return Number.parseInt(name, 10);
}

function missing(file: string): FoundDamage {
  return new FoundDamage({ file, offset: 0, reason: "it is missing" });
}
