import { statSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "./open.ts";

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
