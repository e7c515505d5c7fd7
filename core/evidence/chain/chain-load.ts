import type { KeyStore } from "../key/key-folder.ts";
import { type KeyHistory, readKeyHistory } from "../key/key-history.ts";
import type { WrappingKey, WrappingKeyStore } from "../key/wrapping-key.ts";
import { opensNewest } from "../private/private-field.ts";
import { checkpointKey, type EvidenceStore, recordKey, recordRange, seqIn } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import {
  checkpointSigner,
  isCheckpointSignedBy,
  type NoteSigner,
  parseCheckpoint,
  type SignedCheckpoint,
} from "../tree/checkpoint.ts";
import { TileTree } from "../tree/merkle.ts";
import { TileReader } from "../tree/tile-reader.ts";
import { type ChainHead, ChainWalk } from "./chain-walk.ts";
import type { Mark } from "./high-water.ts";

interface Refusal {
  readonly refused: string;
}

/** The store of a chain, and its keys. */
interface ChainSource {
  readonly store: EvidenceStore;
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
}

/** A chain that can be appended to: its last record, its tree, its signing key and the key of its private values. */
interface LoadedChain {
  readonly head: ChainHead;
  readonly tree: TileTree;
  readonly signer: NoteSigner;
  readonly wrapping: WrappingKey;
}

/**
 * Reads the head of a tenant's chain and checks it against its high-water mark: the marked record must be there,
 * byte for byte, everything after it must link, the latest checkpoint must be signed, and fit chain and tree, and the
 * wrapping key must open the newest private entry.
 * Reads records no further back than the mark.
 */
export async function loadChain(
  source: ChainSource,
  tenant: string,
  mark: Mark | undefined,
): Promise<LoadedChain | Refusal> {
  const { store, keys } = source;
  try {
    if (mark === undefined) return await loadUnmarked(store, tenant);
    const head = await loadMarked(store, tenant, mark);
    if ("refused" in head) return head;
    if (head.seq < 0) return { head, tree: new TileTree(), ...(await openKeys(source, mark.chain)) };
    const attested = await loadAttested(store, keys, { tenant, chain: mark.chain, head });
    if (typeof attested === "string") return { refused: `${chainOf(tenant)} ${attested}` };
    const wrapping = await loadWrappingKey(source, tenant, mark.chain);
    if (typeof wrapping === "string") return { refused: `${chainOf(tenant)} ${wrapping}` };
    return { head, ...attested, wrapping };
  } catch (error) {
    return { refused: `${chainOf(tenant)} cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

async function loadMarked(store: EvidenceStore, tenant: string, mark: Mark): Promise<ChainHead | Refusal> {
  const from = Math.max(mark.seq, 0);
  const walk = new ChainWalk(tenant, mark.chain, from);
  for await (const [key, text] of store.iterator({ ...recordRange(tenant), gte: recordKey(tenant, from) })) {
    const step = walk.accept(key, text);
    if (isChainFault(step))
      return { refused: `${chainOf(tenant)} is broken at record ${walk.head.seq + 1}: ${step.fault}` };
    if (step.record.seq === mark.seq && step.hash !== mark.head) {
      return { refused: `${chainOf(tenant)} differs from its high-water mark at record ${mark.seq}` };
    }
  }
  if (walk.head.seq >= mark.seq) return walk.head;
  return {
    refused: `${chainOf(tenant)} is behind its high-water mark: expected record ${mark.seq} or later, got ${await lastSeq(store, tenant)}`,
  };
}

/** Creates the keys of a chain that holds nothing yet: a process that ended early may have created one of them. */
async function openKeys(source: ChainSource, chain: string): Promise<Pick<LoadedChain, "signer" | "wrapping">> {
  const wrapping = (await source.wrappingKeys.find(chain)) ?? (await source.wrappingKeys.create(chain));
  return { signer: checkpointSigner(chain, await source.keys.create()), wrapping };
}

async function loadWrappingKey(source: ChainSource, tenant: string, chain: string): Promise<WrappingKey | string> {
  const key = await source.wrappingKeys.find(chain);
  if (key === undefined) return "has no good wrapping key in the key folder";
  const fits = await opensNewest(source.store, key, tenant, chain);
  return fits ? key : "has a wrapping key that does not open its private entries";
}

async function loadUnmarked(store: EvidenceStore, tenant: string): Promise<Refusal> {
  return { refused: `${chainOf(tenant)} has no high-water mark; its last record is ${await lastSeq(store, tenant)}` };
}

async function lastSeq(store: EvidenceStore, tenant: string): Promise<string> {
  const [key] = await store.keys({ ...recordRange(tenant), reverse: true, limit: 1 }).all();
  return key === undefined ? "none" : String(seqIn(key));
}

function chainOf(tenant: string): string {
  return `chain of tenant \`${tenant}\``;
}

/** The end of a chain by its records. */
export interface ChainEnd {
  readonly tenant: string;
  readonly chain: string;
  readonly head: ChainHead;
}

/**
 * The tree and the key of a chain whose latest checkpoint is over exactly this head, with the root of the stored tree,
 * signed by the key that the chain itself introduced. Returns the fault as a text otherwise.
 */
export async function loadAttested(
  store: EvidenceStore,
  keys: KeyStore,
  end: ChainEnd,
): Promise<{ readonly tree: TileTree; readonly signer: NoteSigner } | string> {
  const history = await readKeyHistory(store, end.tenant, end.chain);
  if (typeof history === "string") return history;
  const checkpoint = parseCheckpoint((await store.get(checkpointKey(end.tenant))) ?? "");
  const fault = checkpoint === undefined ? "has no checkpoint" : misfit(checkpoint, end, history);
  if (checkpoint === undefined || fault !== undefined) return fault ?? "has no checkpoint";
  const tree = await new TileReader(store, end.tenant).grow(checkpoint.size);
  if (!tree.range.root().equals(checkpoint.root)) return "has a tree that differs from its checkpoint";
  const id = history.current?.id ?? "";
  const key = await keys.find(id);
  if (key === undefined) return `is signed by key \`${id}\`, which is not in the key folder`;
  return { tree, signer: checkpointSigner(end.chain, key) };
}

function misfit(checkpoint: SignedCheckpoint, { chain, head }: ChainEnd, history: KeyHistory): string | undefined {
  const size = head.seq + 1;
  if (checkpoint.chain !== chain) return "has a checkpoint of another chain";
  if (checkpoint.size !== size) return `has a checkpoint over ${checkpoint.size} records, expected ${size}`;
  if (checkpoint.head !== head.hash) return "has a checkpoint over another last record";
  if (!isCheckpointSignedBy(checkpoint, history.keysAt(size))) return "has a checkpoint that its key did not sign";
  return undefined;
}
