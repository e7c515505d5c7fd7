import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { processName } from "./process-name.ts";

/** The process that holds a data folder's state. */
export interface LockHolder {
  readonly pid: number;
  /** As the system calls it. */
  readonly name: string;
}

/**
 * Who holds the state in a data folder, without opening it. Null where nobody does; undefined where the system does not
 * tell: then somebody may.
 */
export async function lockHolder(dataDir: string): Promise<LockHolder | null | undefined> {
  const lock = await stat(join(dataDir, "state", "LOCK")).catch(() => undefined);
  if (lock === undefined) return null;
  const locks = await readFile("/proc/locks", "utf8").catch(() => undefined);
  if (locks === undefined) return undefined;
  const pid = holderOf(locks, lock.ino);
  return pid === undefined ? null : { pid, name: await processName(pid) };
}

/** `1: POSIX  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`. One that waits has `->` in it, and holds nothing. */
function holderOf(locks: string, inode: number): number | undefined {
  for (const line of locks.split("\n")) {
    const [, pid, ino] = /^\d+: (?:POSIX|OFDLCK)\s+\S+\s+WRITE\s+(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) /.exec(line) ?? [];
    if (Number(ino) === inode) return Number(pid);
  }
  return undefined;
}
