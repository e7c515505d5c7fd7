import { statSync } from "node:fs";
import { mkdir, open, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Store } from "./open.ts";

/**
 * Makes a folder, and those it lies in, with mode 0700; one that is there stays as it is.
 * Rejects with the system's own error: Node's recursive `mkdir` says ENOENT of a read-only disk.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" && dirname(path) !== path) {
      await makeFolder(dirname(path));
      await mkdir(path, { mode: 0o700 });
    } else if (code !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
  }
}

/**
 * Whether the store's lock is still the one that was taken when it was opened.
 *
 * LevelDB locks a file and never looks at it again: once that file is removed or replaced, a second process can open the
 * same store, and each would overwrite what the other acknowledged. The file's identity tells; it is taken anew whenever
 * the store is opened again. For a store in memory the answer is always yes.
 */
export function lockWatch(store: Store, dir: string, enabled: boolean): () => boolean {
  if (!enabled) return () => true;
  const path = join(dir, "state", "LOCK");
  let taken = identityOf(path);
  store.on("open", () => {
    taken = identityOf(path);
  });
  return () => taken !== undefined && identityOf(path) === taken;
}

function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

interface Compactor {
  compactRange(start: string, end: string): Promise<void>;
}

/**
 * Rewrites the files that hold keys from `gte` up to, not including, `lt`: what was overwritten or deleted there is on
 * the disk no more when it resolves, in no table and no log. A store in memory keeps no such thing.
 */
export async function compactRange(
  store: Store,
  { gte, lt }: { readonly gte: string; readonly lt: string },
): Promise<void> {
  if (hasFiles(store)) await store.compactRange(gte, lt);
}

/** Only the engine on disk has the method, and says so. */
function hasFiles(store: Store): store is Store & Compactor {
  return store.supports.additionalMethods.compactRange === true;
}

interface DiskSpace {
  /** Bytes that this process may still take. */
  readonly free: number;
  /** Bytes in all. */
  readonly capacity: number;
}

/** The disk that a folder lies on; undefined where it cannot be asked. */
export async function diskSpace(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bsize, bavail, blocks } = await statfs(folder);
    return { free: bavail * bsize, capacity: blocks * bsize };
  } catch {
    return undefined;
  }
}

/** Makes durable which names a folder holds. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
