import type { AbstractIterator } from "abstract-level";
import { ActionRules, type FirstBad } from "./action-rule.ts";
import { type ChainHead, ChainWalk } from "./chain-walk.ts";
import type { Mark } from "./high-water.ts";
import { type EvidenceStore, recordRange } from "./key-space.ts";
import { isAction, isFault } from "./record-text.ts";
import { isClosedFault, readFault } from "./store-fault.ts";

export interface VerifyReport {
  readonly ok: boolean;
  readonly tenant: string;
  /** Records that are sound, from the first on. */
  readonly records: number;
  /** The last record of a sound chain; null for an empty one and for one that is not sound. */
  readonly head: ChainHead | null;
  readonly firstBad?: FirstBad;
}

type ChainIterator = AbstractIterator<EvidenceStore, string, string>;

const chunkEntries = 256;
/** Both engines take it; the abstract interface does not name it. */
const chunkSize: object = { highWaterMarkBytes: 1_048_576 };

/**
 * Reads a tenant's whole chain and checks every record, link and rule, and that the chain reaches its high-water mark
 * with the marked digest. Reads a snapshot and streams it: memory does not grow with the chain, and appends go on.
 * A store that cannot be read is a bad record, not an error. `onProgress` hears the number of sound records so far.
 * Throws EVIDENCE_UNAVAILABLE when the store is closed meanwhile.
 */
export async function verifyChain(
  store: EvidenceStore,
  tenant: string,
  mark: Mark | undefined,
  onProgress: (checked: number) => void = () => {},
): Promise<VerifyReport> {
  const walk = new ChainWalk(tenant, mark?.chain ?? null, 0);
  try {
    await using snapshot = store.snapshot();
    const rules = new ActionRules({ get: (key) => store.get(key, { snapshot }) }, tenant);
    const iterator = store.iterator({ ...recordRange(tenant), snapshot, ...chunkSize });
    const bad = (await findBadRecord(iterator, walk, rules, mark, onProgress)) ?? checkEnd(walk.head, mark);
    return report(tenant, walk.head, bad ?? (await rules.findForgotten()));
  } catch (error) {
    if (isClosedFault(error)) throw readFault(error);
    const reason = `the store cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return report(tenant, walk.head, { seq: walk.head.seq + 1, reason });
  }
}

async function findBadRecord(
  iterator: ChainIterator,
  walk: ChainWalk,
  rules: ActionRules,
  mark: Mark | undefined,
  onProgress: (checked: number) => void,
): Promise<FirstBad | undefined> {
  try {
    for (;;) {
      const chunk = await iterator.nextv(chunkEntries);
      if (chunk.length === 0) return undefined;
      for (const [key, text] of chunk) {
        const seq = walk.head.seq + 1;
        const step = walk.accept(key, text);
        if (isFault(step)) return { seq, reason: step.fault };
        if (seq === mark?.seq && step.hash !== mark.head)
          return { seq, reason: "the record differs from the high-water mark" };
        const reason = isAction(step.record) ? await rules.check(step.record, step.hash) : undefined;
        if (reason !== undefined) return { seq, reason };
      }
      onProgress(walk.head.seq + 1);
    }
  } finally {
    await iterator.close();
  }
}

function checkEnd(head: ChainHead, mark: Mark | undefined): FirstBad | undefined {
  const seq = head.seq + 1;
  if (mark === undefined) return seq === 0 ? undefined : { seq: 0, reason: "the chain has no high-water mark" };
  if (head.seq >= mark.seq) return undefined;
  return { seq, reason: `the chain ends before its high-water mark, record ${mark.seq}` };
}

function report(tenant: string, head: ChainHead, bad: FirstBad | undefined): VerifyReport {
  const read = head.seq + 1;
  if (bad === undefined) return { ok: true, tenant, records: read, head: read === 0 ? null : head };
  return { ok: false, tenant, records: Math.min(read, bad.seq), head: null, firstBad: bad };
}
