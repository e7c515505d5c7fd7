import { heldSnapshots } from "./held-snapshot.ts";
import type { KeyRange, StringLevel } from "./key-range.ts";

interface Compactor {
  compactRange(start: string, end: string): Promise<void>;
}

/**
 * Rewrites every file that holds keys of the range: when it resolves, values that were overwritten or deleted there are
 * gone from the disk, from tables and logs. The database keeps what an older snapshot can still see, so those that are open
 * are waited for. Rejects with the signal's reason where that ends the wait.
 */
export async function rewriteRange(store: StringLevel, { gte, lt }: KeyRange, signal?: AbortSignal): Promise<void> {
  await settled(heldSnapshots(store), signal);
  // A compaction rewrites the files that overlap what lies above them. A value and its deletion that came down together, from
  // memory or while a snapshot saw the value, have nothing above them: so two deletions of nothing span the range, once all
  // that is in memory came down. No key ends so.
  await compactRange(store, { gte, lt: gte });
  const [first, last] = [`${gte}\0`, `${lt}\0`];
  await store.batch([
    { type: "del", key: first },
    { type: "del", key: last },
  ]);
  await compactRange(store, { gte, lt: `${last}\x7f` });
}

/** Rewrites the files that hold keys of the range, as the database does by itself at any time. A store in memory has none. */
export async function compactRange(store: StringLevel, { gte, lt }: KeyRange): Promise<void> {
  if (hasFiles(store)) await store.compactRange(gte, lt);
}

/** Only the engine on disk has the method. */
function hasFiles(store: StringLevel): store is StringLevel & Compactor {
  return store.supports.additionalMethods.compactRange === true;
}

/** Resolves when all snapshots are closed. */
async function settled(snapshots: readonly Promise<void>[], signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (snapshots.length === 0) return;
  let abort = (): void => {};
  const aborted = new Promise<void>((_, reject) => {
    abort = () => reject(signal?.reason);
    signal?.addEventListener("abort", abort);
  });
  try {
    await Promise.race([Promise.all(snapshots), aborted]);
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
