import { loadAttested } from "./attested-head.ts";
import { type ChainHead, ChainWalk } from "./chain-walk.ts";
import type { Mark } from "./high-water.ts";
import type { KeyStore } from "./key-folder.ts";
import { type EvidenceStore, recordKey, recordRange } from "./key-space.ts";
import { isFault } from "./record-text.ts";
import type { SigningKey } from "./signing-key.ts";
import { TileTree } from "./tile.ts";

export interface Refusal {
  readonly refused: string;
}

/** A chain ready to grow: its last record, its tree, and the key that signs it. */
export interface LoadedChain {
  readonly head: ChainHead;
  readonly tree: TileTree;
  readonly key: SigningKey;
}

/**
 * Reads where a tenant's chain stands and checks it against its high-water mark: the marked record must be there,
 * byte for byte, everything after it must link, and the latest checkpoint must be signed, and fit chain and tree.
 * Reads records no further back than the mark.
 */
export async function loadChain(
  store: EvidenceStore,
  keys: KeyStore,
  tenant: string,
  mark: Mark | undefined,
): Promise<LoadedChain | Refusal> {
  try {
    if (mark === undefined) return await loadUnmarked(store, tenant);
    const head = await loadMarked(store, tenant, mark);
    if ("refused" in head) return head;
    if (head.seq < 0) return { head, tree: new TileTree(), key: await keys.create() };
    const attested = await loadAttested(store, keys, { tenant, chain: mark.chain, head });
    return typeof attested === "string" ? { refused: `${chainOf(tenant)} ${attested}` } : { head, ...attested };
  } catch (error) {
    return { refused: `${chainOf(tenant)} cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

async function loadMarked(store: EvidenceStore, tenant: string, mark: Mark): Promise<ChainHead | Refusal> {
  const from = Math.max(mark.seq, 0);
  const walk = new ChainWalk(tenant, mark.chain, from);
  for await (const [key, text] of store.iterator({ ...recordRange(tenant), gte: recordKey(tenant, from) })) {
    const step = walk.accept(key, text);
    if (isFault(step)) return { refused: `${chainOf(tenant)} is broken at record ${walk.head.seq + 1}: ${step.fault}` };
    if (step.record.seq === mark.seq && step.hash !== mark.head) {
      return { refused: `${chainOf(tenant)} differs from its high-water mark at record ${mark.seq}` };
    }
  }
  if (walk.head.seq >= mark.seq) return walk.head;
  return {
    refused: `${chainOf(tenant)} is behind its high-water mark: expected record ${mark.seq} or later, got ${await lastSeq(store, tenant)}`,
  };
}

async function loadUnmarked(store: EvidenceStore, tenant: string): Promise<Refusal> {
  return { refused: `${chainOf(tenant)} has no high-water mark; its last record is ${await lastSeq(store, tenant)}` };
}

async function lastSeq(store: EvidenceStore, tenant: string): Promise<string> {
  const [key] = await store.keys({ ...recordRange(tenant), reverse: true, limit: 1 }).all();
  return key === undefined ? "none" : String(Number(key.slice(key.lastIndexOf("/") + 1)));
}

function chainOf(tenant: string): string {
  return `chain of tenant \`${tenant}\``;
}
