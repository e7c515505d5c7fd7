import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { quantile } from "./quantile.ts";

const page = Buffer.alloc(4_096);

/** Milliseconds at the median for writing and syncing 4 KiB twice, one after the other, to a file in `folder`. */
export function measureTwoSyncs(folder: string, times = 500): number {
  const path = join(folder, "sync-bench");
  const file = openSync(path, "w");
  const taken: number[] = [];
  for (let time = 0; time < times; time++) {
    const start = performance.now();
    for (let sync = 0; sync < 2; sync++) {
      writeSync(file, page);
      fdatasyncSync(file);
    }
    taken.push(performance.now() - start);
  }
  closeSync(file);
  rmSync(path);
  return quantile(taken, 0.5);
}

/** Bytes of all files below `folder`; those that go meanwhile are left out. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(({ parentPath, name }) => fileBytes(join(parentPath, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function fileBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
