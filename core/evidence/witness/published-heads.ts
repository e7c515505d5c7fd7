import { type EvidenceStore, metaKey, metaRange } from "../record/key-space.ts";
import type { MetaEntry } from "./tenant-index.ts";

/** The lists of chains a witness may have: the last it took, and one that it was sent without answering. */
export interface ToldList {
  readonly confirmed: readonly MetaEntry[] | null;
  readonly pending: readonly MetaEntry[] | null;
}

/** What a witness, by its configured name, was told. Throws where the store holds something else. */
export async function readTold(store: EvidenceStore, witness: string): Promise<ToldList> {
  const text = await store.get(metaKey(witness));
  if (text === undefined) return { confirmed: null, pending: null };
  const told = parseTold(text);
  if (told === undefined) throw new Error(`the list that witness \`${witness}\` was told cannot be read`);
  return told;
}

/** Every list that any witness was told. */
export async function readAllTold(store: EvidenceStore): Promise<readonly (readonly MetaEntry[])[]> {
  const told = [...(await readToldByKey(store)).values()];
  return told.flatMap(({ pending, confirmed }) => [pending, confirmed]).filter((list) => list !== null);
}

/** What each witness was told, by the key it lies at. What is no list is none. */
export async function readToldByKey(store: EvidenceStore): Promise<ReadonlyMap<string, ToldList>> {
  const byKey = new Map<string, ToldList>();
  for await (const [key, text] of store.iterator(metaRange())) {
    const told = key.includes("/") ? undefined : parseTold(text); // a tenant may be called `meta-…` too
    if (told !== undefined) byKey.set(key, told);
  }
  return byKey;
}

function parseTold(text: string): ToldList | undefined {
  try {
    const told = JSON.parse(text) as ToldList;
    return isList(told.confirmed) && isList(told.pending) ? told : undefined;
  } catch {
    return undefined;
  }
}

function isList(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.every(isEntry));
}

function isEntry(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { tenant, chain, size, root, salt } = value as Partial<Record<keyof MetaEntry, unknown>>;
  return [tenant, chain, root, salt].every((each) => typeof each === "string") && Number.isSafeInteger(size);
}
