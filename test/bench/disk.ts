import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
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
