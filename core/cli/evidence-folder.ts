import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { HighWaterFile, type Mark } from "../evidence/high-water.ts";
import { type EvidenceStore, listTenants } from "../evidence/key-space.ts";
import { openSnapshot } from "../store/snapshot.ts";

/** The evidence in a data folder on which no gateway runs. Reading it changes nothing in the folder. */
export interface EvidenceFolder {
  readonly store: EvidenceStore;
  readonly marks: ReadonlyMap<string, Mark>;
  /** Every tenant that has evidence or a mark, sorted. */
  readonly tenants: readonly string[];
  close(): Promise<void>;
}

/** Throws STATE_UNUSABLE where the folder cannot be read, or a gateway runs on it. */
export async function openEvidenceFolder(dir: string): Promise<EvidenceFolder> {
  const snapshot = await openSnapshot(dir);
  try {
    const marks = await readMarks(join(dir, "high-water"), join(snapshot.folder, "high-water"));
    const tenants = new Set([...marks.keys(), ...(await listTenants(snapshot.store))]);
    return { store: snapshot.store, marks, tenants: [...tenants].sort(), close: () => snapshot.close() };
  } catch (error) {
    await snapshot.close();
    throw error;
  }
}

/**
 * The marks in the file `path`, read through a `copy` that does not exist yet. Marks that are gone are none: a chain
 * without its mark is told as broken.
 */
export async function readMarks(path: string, copy: string): Promise<ReadonlyMap<string, Mark>> {
  try {
    await copyFile(path, copy);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
  const file = await HighWaterFile.open(copy);
  await file.close();
  return file.marks;
}
