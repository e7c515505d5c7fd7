import { randomBytes } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";

/** What writing to a folder showed. */
export interface Probed {
  /** Of each synced write of 4 KiB, in milliseconds, the shortest first. */
  readonly syncMs: readonly number[];
  /** The time of the file system less that of this process, in milliseconds. */
  readonly skewMs: number;
}

const page = Buffer.alloc(4_096, 0x2e);
const mostMs = 3_000;

/** Makes a file of its own in a folder, syncs it as often as evidence would be, and removes it. Rejects where that fails. */
export async function probeFolder(folder: string, writes: number): Promise<Probed> {
  const path = join(folder, `.doctor-${randomBytes(8).toString("hex")}`);
  const file = await open(path, "wx", 0o600);
  try {
    const { mtimeMs } = await file.stat();
    const skewMs = mtimeMs - Date.now();
    const syncMs: number[] = [];
    const started = performance.now();
    while (syncMs.length < writes && performance.now() - started < mostMs) {
      const before = performance.now();
      await file.write(page);
      await file.datasync();
      syncMs.push(performance.now() - before);
    }
    return { syncMs: syncMs.toSorted((a, b) => a - b), skewMs };
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}
