import { type EvidenceStore, publishedHeadsKey, publishedHeadsRange } from "../record/key-space.ts";
import type { TenantIndexEntry } from "./tenant-index.ts";

/** The lists of chains a witness may have: the last it took, and one that it was sent without answering. */
export interface PublishedHeads {
  readonly confirmed: readonly TenantIndexEntry[] | null;
  readonly pending: readonly TenantIndexEntry[] | null;
}

/** Reads the heads that were published to a witness, by its configured name. Throws where the entry is damaged. */
export async function readPublishedHeads(store: EvidenceStore, witness: string): Promise<PublishedHeads> {
  const text = await store.get(publishedHeadsKey(witness));
  if (text === undefined) return { confirmed: null, pending: null };
  const heads = parsePublishedHeads(text);
  if (heads === undefined) throw new Error(`the list that witness \`${witness}\` was sent cannot be read`);
  return heads;
}

/** Lists every published list of heads, of any witness. */
export async function listPublishedHeads(store: EvidenceStore): Promise<readonly (readonly TenantIndexEntry[])[]> {
  const heads = [...(await readPublishedHeadsByKey(store)).values()];
  return heads.flatMap(({ pending, confirmed }) => [pending, confirmed]).filter((list) => list !== null);
}

/** Reads the published heads of each witness, by their key. Skips entries that are no list. */
export async function readPublishedHeadsByKey(store: EvidenceStore): Promise<ReadonlyMap<string, PublishedHeads>> {
  const byKey = new Map<string, PublishedHeads>();
  for await (const [key, text] of store.iterator(publishedHeadsRange())) {
    const heads = key.includes("/") ? undefined : parsePublishedHeads(text); // a tenant may be called `meta-…` too
    if (heads !== undefined) byKey.set(key, heads);
  }
  return byKey;
}

function parsePublishedHeads(text: string): PublishedHeads | undefined {
  try {
    const heads = JSON.parse(text) as PublishedHeads;
    return isList(heads.confirmed) && isList(heads.pending) ? heads : undefined;
  } catch {
    return undefined;
  }
}

function isList(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.every(isEntry));
}

function isEntry(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { tenant, chain, size, root, salt } = value as Partial<Record<keyof TenantIndexEntry, unknown>>;
  return [tenant, chain, root, salt].every((each) => typeof each === "string") && Number.isSafeInteger(size);
}
