import { GatewayError } from "../../action/error.ts";
import { HeldSnapshot } from "../../store/held-snapshot.ts";
import type { Pace } from "../../store/pace.ts";
import { type ChainHead, ChainWalk, type Step } from "../chain/chain-walk.ts";
import type { Mark } from "../chain/high-water.ts";
import { checkpointAtRange, type EvidenceStore, recordKey, recordRange } from "../record/key-space.ts";
import { type ChainFault, chainFault, type FirstBad, isChainFault } from "../record/reason.ts";
import { type ChainView, type EntryReader, isClosedFault, readFault, StoreView } from "../record/store-view.ts";
import { RetentionRules } from "../retention/retention-rule.ts";
import { isLeafOf, TreeFault } from "../tree/merkle.ts";
import { PrunedLeaves, readPruned } from "../tree/pruned-prefix.ts";
import { ActionRules } from "./action-rule.ts";
import type { RecordRules } from "./record-rule.ts";
import { TreeRules } from "./tree-rule.ts";

export interface VerifyReport {
  readonly ok: boolean;
  readonly tenant: string;
  /** Records that are sound, from the first on; those that were pruned are sound by their leaves. */
  readonly records: number;
  /** The last record of a sound chain; null for an empty one and for one that is not sound. */
  readonly head: ChainHead | null;
  readonly firstBad?: FirstBad;
  /** The reason for which the tenant is refused although its records are sound, such as a witness that contradicts. */
  readonly refused?: string;
  /** The first record after those that were pruned; absent where none were. */
  readonly firstKept?: number;
}

/** The caller's part of a verification. */
export interface VerifyWatch {
  /** Receives the number of sound records so far. */
  readonly onProgress?: (checked: number) => void;
  /** Absent in a process that serves no requests meanwhile. */
  readonly pace?: Pace | undefined;
}

const chunkEntries = 256;

/**
 * Reads a tenant's whole chain and checks every record, link and rule, the tree over it, every stored checkpoint and
 * its signatures, that the chain reaches its high-water mark with the marked digest, and that what was pruned is proven
 * and recorded. Reads a snapshot and streams it: memory does not grow with the chain, and appends go on.
 * A store that cannot be read is a bad record, not an error.
 * Throws EVIDENCE_UNAVAILABLE when the store is closed meanwhile, and the reason of the pace's signal.
 */
export async function verifyChain(
  store: EvidenceStore,
  tenant: string,
  mark: Mark | undefined,
  rules: RecordRules,
  watch: VerifyWatch = {},
): Promise<VerifyReport> {
  try {
    await using held = new HeldSnapshot(store);
    return await verifyView(new StoreView(store, held.snapshot), tenant, mark, rules, watch);
  } catch (error) {
    throw isClosedFault(error) ? readFault(error) : error;
  }
}

/** Verifies a chain as `verifyChain` does, in what `view` shows: the store at one moment. */
export async function verifyView(
  view: ChainView,
  tenant: string,
  mark: Mark | undefined,
  rules: RecordRules,
  { onProgress = () => {}, pace }: VerifyWatch = {},
): Promise<VerifyReport> {
  const walk = new ChainWalk(tenant, mark?.chain ?? null, 0);
  try {
    await using stored = view.read(checkpointAtRange(tenant));
    const prefix = await readPruned(view, tenant);
    const leaves = prefix && new PrunedLeaves(view, tenant, prefix);
    const check = {
      walk,
      actions: new ActionRules({ reader: view, tenant, rules, pruned: leaves }),
      tree: await TreeRules.begin(view, tenant, stored),
      retention: new RetentionRules(prefix?.firstKept ?? 0),
      mark,
      onProgress,
      pace,
    };
    const range = recordRange(tenant);
    const cut = recordKey(tenant, prefix?.firstKept ?? 0);
    const bad =
      (leaves && (await findBadPruned(view.read({ ...range, lt: cut }), tenant, leaves, check))) ??
      (await findBadRecord(view.read({ ...range, gte: cut }), check)) ??
      (await findBadEnd(check));
    return report(tenant, walk.head, bad, prefix?.firstKept);
  } catch (error) {
    if (isClosedFault(error)) throw readFault(error);
    // The pace's signal: no statement about the content either.
    if (error instanceof GatewayError) throw error;
    const detail = `the store cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return report(tenant, walk.head, { seq: walk.head.seq + 1, reason: "malformed", detail });
  }
}

interface Check {
  readonly walk: ChainWalk;
  readonly actions: ActionRules;
  readonly tree: TreeRules;
  readonly retention: RetentionRules;
  readonly mark: Mark | undefined;
  readonly onProgress: (checked: number) => void;
  readonly pace: Pace | undefined;
}

async function findBadPruned(
  opened: EntryReader,
  tenant: string,
  leaves: PrunedLeaves,
  check: Check,
): Promise<FirstBad | undefined> {
  await using entries = opened;
  return await new PrunedWalk({ tenant, entries, leaves, ...check }).findBad(check.onProgress);
}

async function findBadRecord(opened: EntryReader, check: Check): Promise<FirstBad | undefined> {
  const { walk, mark } = check;
  await using entries = opened;
  for (;;) {
    const chunk = await entries.nextv(chunkEntries);
    if (chunk.length === 0) return undefined;
    for (const [key, text] of chunk) {
      await check.pace?.rest();
      const seq = walk.head.seq + 1;
      const step = walk.accept(key, text);
      if (isChainFault(step)) return badAt(seq, step);
      if (seq === mark?.seq && step.hash !== mark.head) {
        return { seq, reason: "forked", detail: "the record differs from the high-water mark" };
      }
      const broken = await findBrokenRule(step, check);
      if (broken !== undefined) return badAt(seq, broken);
    }
    check.onProgress(walk.head.seq + 1);
  }
}

async function findBrokenRule(
  { record, hash }: Step,
  { actions, tree, retention }: Check,
): Promise<ChainFault | undefined> {
  return (await actions.check(record, hash)) ?? retention.check(record) ?? (await tree.check(record, hash));
}

async function findBadEnd({ walk, actions, tree, retention, mark }: Check): Promise<FirstBad | undefined> {
  return (
    checkEnd(walk.head, mark) ?? retention.findUnsaid() ?? (await tree.checkEnd()) ?? (await actions.findForgotten())
  );
}

function checkEnd(head: ChainHead, mark: Mark | undefined): FirstBad | undefined {
  const seq = head.seq + 1;
  if (mark === undefined) {
    return seq === 0 ? undefined : { seq: 0, reason: "missing_file", detail: "the chain has no high-water mark" };
  }
  if (head.seq >= mark.seq) return undefined;
  return { seq, reason: "behind_witness", detail: `the chain ends before its high-water mark, record ${mark.seq}` };
}

function badAt(seq: number, { reason, fault }: ChainFault): FirstBad {
  return { seq, reason, detail: fault };
}

function report(tenant: string, head: ChainHead, bad: FirstBad | undefined, firstKept?: number): VerifyReport {
  const read = head.seq + 1;
  const pruned = firstKept === undefined ? {} : { firstKept };
  if (bad === undefined) return { ok: true, tenant, records: read, head: read === 0 ? null : head, ...pruned };
  return { ok: false, tenant, records: Math.min(read, bad.seq), head: null, firstBad: bad, ...pruned };
}

interface PrunedWalkParts {
  readonly tenant: string;
  /** The records before the cut that are there. */
  readonly entries: EntryReader;
  readonly leaves: PrunedLeaves;
  readonly walk: ChainWalk;
  readonly actions: ActionRules;
  readonly tree: TreeRules;
  readonly retention: RetentionRules;
  readonly mark: Mark | undefined;
  readonly pace: Pace | undefined;
}

const progressEvery = 256;

/**
 * Checks the remains before the cut: each leaf is part of the tree, which every checkpoint signs; each
 * record that is there, because it is kept or not deleted yet, is the one of its leaf.
 * Leaves `walk` before the first record that was kept.
 */
class PrunedWalk {
  readonly #parts: PrunedWalkParts;
  #next: readonly [key: string, text: string] | undefined;

  constructor(parts: PrunedWalkParts) {
    this.#parts = parts;
  }

  async findBad(onProgress: (checked: number) => void): Promise<FirstBad | undefined> {
    const { leaves, entries, walk, pace } = this.#parts;
    const { firstKept } = leaves.prefix;
    this.#next = await entries.next();
    for (let seq = 0; seq < firstKept; seq++) {
      await pace?.rest();
      const broken = await this.#checkPlace(seq);
      if (broken !== undefined) return { seq, reason: broken.reason, detail: broken.fault };
      if ((seq + 1) % progressEvery === 0) onProgress(seq + 1);
    }
    if (this.#next !== undefined) {
      return { seq: firstKept, reason: "seq_gap", detail: "expected every record under its own number" };
    }
    walk.skip(firstKept, await leaves.at(firstKept - 1));
    return undefined;
  }

  async #checkPlace(seq: number): Promise<ChainFault | undefined> {
    const { leaves, tree, tenant, mark } = this.#parts;
    try {
      const leaf = await leaves.at(seq);
      if (seq === mark?.seq && !isLeafOf(leaf, mark.head))
        return chainFault("forked", "the record differs from the high-water mark");
      if (this.#next?.[0] === recordKey(tenant, seq)) return await this.#checkRecord(seq, leaf, this.#next);
      if (seq === 0) return chainFault("missing_record", "the genesis record is missing");
      return await tree.checkPruned(seq, leaf);
    } catch (error) {
      if (error instanceof TreeFault) return chainFault("bad_inclusion", error.message);
      throw error;
    }
  }

  async #checkRecord(
    seq: number,
    leaf: Buffer,
    [key, text]: readonly [string, string],
  ): Promise<ChainFault | undefined> {
    const { leaves, tree, walk, actions, retention, entries } = this.#parts;
    if (seq > 0) walk.skip(seq, await leaves.at(seq - 1));
    const step = walk.accept(key, text);
    if (isChainFault(step)) return step;
    if (!isLeafOf(leaf, step.hash)) return chainFault("bad_inclusion", "the record is not the one of the tree");
    this.#next = await entries.next();
    actions.acceptKept(step.record);
    return retention.check(step.record) ?? (await tree.check(step.record, step.hash));
  }
}
