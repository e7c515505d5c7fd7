import { parseCheckpoint } from "../checkpoint.ts";
import { checkpointKey, durably, type EvidenceStore, metaSaltKey } from "../key-space.ts";
import type { MetaEntry } from "../meta-log.ts";
import { readToldByKey } from "../told-list.ts";

/**
 * Notes of every witness that it may know the chains as they stand in this store, as after a push without an answer: a
 * gateway that went on after its store was read told them so, and the store cannot know.
 */
export async function assumeTold(store: EvidenceStore, tenants: readonly string[]): Promise<void> {
  const entries: MetaEntry[] = [];
  for (const tenant of tenants) {
    const checkpoint = parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "");
    const salt = await store.get(metaSaltKey(tenant));
    if (checkpoint === undefined || salt === undefined) continue;
    const { chain, size, root } = checkpoint;
    entries.push({ tenant, chain, size, root: root.toString("hex"), salt });
  }
  for (const [key, { confirmed, pending }] of await readToldByKey(store)) {
    await store.put(key, JSON.stringify({ confirmed, pending: pending ?? entries }), durably);
  }
}
