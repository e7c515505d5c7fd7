import type { SigningKey } from "../../action/signing-key.ts";
import type { ChainHead } from "../chain/chain-walk.ts";
import { checkpointKey, type EvidenceStore, keyRecordRange, recordKey, seqIn } from "../chain/key-space.ts";
import { readRecord } from "../chain/record-text.ts";
import { isFault } from "../fault.ts";
import { isCheckpointSignedBy, parseCheckpoint, type SignedCheckpoint } from "../tree/checkpoint.ts";
import type { TileTree } from "../tree/tile.ts";
import { TileReader } from "../tree/tile-reader.ts";
import type { KeyStore } from "./key-folder.ts";
import { KeyHistory } from "./key-history.ts";

/** The end of a chain, as its records say it. */
export interface ChainEnd {
  readonly tenant: string;
  readonly chain: string;
  readonly head: ChainHead;
}

/**
 * The tree and the key of a chain whose latest checkpoint is over exactly this head, with the root of the stored tree,
 * signed by the key that the chain itself introduced. Says what is wrong where it is not so.
 */
export async function loadAttested(
  store: EvidenceStore,
  keys: KeyStore,
  end: ChainEnd,
): Promise<{ readonly tree: TileTree; readonly key: SigningKey } | string> {
  const history = await readKeyHistory(store, end.tenant, end.chain);
  if (typeof history === "string") return history;
  const checkpoint = parseCheckpoint((await store.get(checkpointKey(end.tenant))) ?? "");
  const fault = checkpoint === undefined ? "has no checkpoint" : misfit(checkpoint, end, history);
  if (checkpoint === undefined || fault !== undefined) return fault ?? "has no checkpoint";
  const tree = await new TileReader(store, end.tenant).grow(checkpoint.size);
  if (!tree.root().equals(checkpoint.root)) return "has a tree that differs from its checkpoint";
  const id = history.current?.id ?? "";
  const key = await keys.find(id);
  return key === undefined ? `is signed by key \`${id}\`, which is not in the key folder` : { tree, key };
}

function misfit(checkpoint: SignedCheckpoint, { chain, head }: ChainEnd, history: KeyHistory): string | undefined {
  const size = head.seq + 1;
  if (checkpoint.chain !== chain) return "has a checkpoint of another chain";
  if (checkpoint.size !== size) return `has a checkpoint over ${checkpoint.size} records, expected ${size}`;
  if (checkpoint.head !== head.hash) return "has a checkpoint over another last record";
  if (!isCheckpointSignedBy(checkpoint, history.keysAt(size))) return "has a checkpoint that its key did not sign";
  return undefined;
}

/** The keys of a chain by its own records, read through their index. Says what is wrong where one introduces no key. */
export async function readKeyHistory(
  store: EvidenceStore,
  tenant: string,
  chain: string,
): Promise<KeyHistory | string> {
  const history = new KeyHistory();
  for await (const [key, id] of store.iterator(keyRecordRange(tenant))) {
    const seq = seqIn(key);
    const text = await store.get(recordKey(tenant, seq));
    const record = text === undefined ? undefined : readRecord(text);
    const sound = record !== undefined && !isFault(record) && record.tenant === tenant && record.chain === chain;
    if (!sound || record.seq !== seq || !history.accept(record) || history.current?.id !== id) {
      return `has no good signing key at record ${seq}`;
    }
  }
  return history.current === undefined ? "has no signing key" : history;
}
