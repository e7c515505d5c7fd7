import type { Store } from "./open.ts";

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
