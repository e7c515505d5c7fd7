import { join } from "node:path";
import type { AbstractChainedBatch } from "abstract-level";
import { assumeTold } from "../evidence/backup/assumed-list.ts";
import { refuse } from "../evidence/backup/content.ts";
import { type BackupSink, readBackup, type SoundBackup } from "../evidence/backup/read.ts";
import { HighWaterFile, type Mark } from "../evidence/high-water.ts";
import { listTenants } from "../evidence/key-space.ts";
import { openStore, type Store } from "../store/open.ts";
import type { EvidenceFolder } from "./evidence-folder.ts";

/** What a backup holds, as a data folder without keys. */
export interface StagedBackup extends EvidenceFolder {
  readonly store: Store;
}

/**
 * Lays a sound backup out in an empty folder: its store in `state`, its marks in `high-water`. Durable when it resolves.
 * Throws BACKUP_REFUSED where the file is not what `sound` was read from any more.
 */
export async function stageBackup(path: string, sound: SoundBackup, dir: string): Promise<StagedBackup> {
  const sink = new StoreSink(await openStore({ dir, enabled: true }));
  try {
    const read = await readBackup(path, { sink });
    if (read.root !== sound.root || read.lines !== sound.lines) throw refuse("it changed while it was read");
  } finally {
    await sink.store.close();
  }
  await writeMarks(join(dir, "high-water"), sink.marks);
  // Opened anew: what the database had only logged becomes tables, and a store of another format is refused.
  const store = await openStore({ dir, enabled: true });
  const marks = new Map(sink.marks.map((mark) => [mark.tenant, mark]));
  const tenants = [...new Set([...marks.keys(), ...(await listTenants(store))])].sort();
  await assumeTold(store, tenants);
  return { store, marks, tenants, close: () => store.close() };
}

async function writeMarks(path: string, marks: readonly Mark[]): Promise<void> {
  const file = await HighWaterFile.open(path);
  try {
    await file.advance(marks);
  } finally {
    await file.close();
  }
}

class StoreSink implements BackupSink {
  readonly store: Store;
  readonly marks: Mark[] = [];
  #batch: AbstractChainedBatch<Store, string, string>;

  constructor(store: Store) {
    this.store = store;
    this.#batch = store.batch();
  }

  mark(mark: Mark): void {
    this.marks.push(mark);
  }

  entry(key: string, value: string): void {
    this.#batch.put(key, value);
  }

  async flush(): Promise<void> {
    await this.#batch.write();
    this.#batch = this.store.batch();
  }
}
