import { GatewayError } from "../kernel/error.ts";
import { ActionRules } from "./action-rule.ts";
import { type ChainHead, ChainWalk } from "./chain-walk.ts";
import type { Mark } from "./high-water.ts";
import { type EvidenceStore, recordRange } from "./key-space.ts";
import { isAction, isFault } from "./record-text.ts";

export interface VerifyReport {
  readonly ok: boolean;
  readonly tenant: string;
  /** Records that are sound, from the first on. */
  readonly records: number;
  /** The last sound record; null for an empty chain. */
  readonly head: ChainHead | null;
  readonly firstBad?: FirstBad;
}

export interface FirstBad {
  readonly seq: number;
  readonly reason: string;
}

const chunkEntries = 256;
const chunkBytes = 1_048_576;
const closedCodes: ReadonlySet<unknown> = new Set(["LEVEL_DATABASE_NOT_OPEN", "LEVEL_ITERATOR_NOT_OPEN"]);

/**
 * Reads a tenant's whole chain and checks every record, link and rule, and that the chain reaches its high-water mark
 * with the marked digest. Streams: memory does not grow with the chain. A store that cannot be read is a bad record,
 * not an error. `onProgress` hears the number of sound records after each chunk.
 */
export async function verifyChain(
  store: EvidenceStore,
  tenant: string,
  mark: Mark | undefined,
  onProgress?: (checked: number) => void,
): Promise<VerifyReport> {
  const walk = new ChainWalk(tenant, mark?.chain ?? null, 0);
  const rules = new ActionRules(store, tenant);
  const check = async (key: string, text: string): Promise<string | undefined> => {
    const step = walk.accept(key, text);
    if (isFault(step)) return step.fault;
    if (step.record.seq === mark?.seq && step.hash !== mark.head) return "the record differs from the high-water mark";
    return isAction(step.record) ? rules.check(step.record, step.hash) : undefined;
  };
  let sound = -1;
  let head: ChainHead | null = null;
  const bad = (reason: string): VerifyReport => {
    return { ok: false, tenant, records: sound + 1, head, firstBad: { seq: sound + 1, reason } };
  };
  try {
    for await (const chunk of readChunks(store, tenant)) {
      for (const [key, text] of chunk) {
        const reason = await check(key, text);
        if (reason !== undefined) return bad(reason);
        head = walk.head;
        sound = head.seq;
      }
      onProgress?.(sound + 1);
    }
  } catch (error) {
    if (isClosed(error))
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "the store was closed meanwhile", { cause: error });
    return bad(`the store cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (sound < (mark?.seq ?? -1)) return bad(`the chain ends here, but its high-water mark is at ${mark?.seq}`);
  if (head !== null && mark === undefined) return bad("the chain has no high-water mark");
  return { ok: true, tenant, records: sound + 1, head };
}

/** The store was closed under the reader, by a stop or a repair: that says nothing about the chain. */
function isClosed(error: unknown): boolean {
  return error instanceof Error && "code" in error && closedCodes.has(error.code);
}

/** Chunks of a snapshot, so that records appended meanwhile are not half seen. */
async function* readChunks(store: EvidenceStore, tenant: string): AsyncGenerator<[string, string][]> {
  const iterator = store.iterator({ ...recordRange(tenant), highWaterMarkBytes: chunkBytes } as object);
  try {
    for (;;) {
      const chunk = await iterator.nextv(chunkEntries);
      if (chunk.length === 0) return;
      yield chunk;
    }
  } finally {
    await iterator.close();
  }
}
