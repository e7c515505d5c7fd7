import type { AbstractIterator } from "abstract-level";
import type { ActionRules, FirstBad } from "./action-rule.ts";
import type { ChainWalk } from "./chain-walk.ts";
import { type Fault, fault, isFault } from "./fault.ts";
import type { Mark } from "./high-water.ts";
import { type EvidenceStore, recordKey } from "./key-space.ts";
import { isLeafOf } from "./merkle.ts";
import type { PrunedLeaves } from "./pruned-leaf.ts";
import type { RetentionRules } from "./retention-rule.ts";
import { TreeFault } from "./tree-fault.ts";
import type { TreeRules } from "./tree-rule.ts";

export interface PrunedWalkParts {
  readonly tenant: string;
  /** The records before the cut that are there. */
  readonly entries: AbstractIterator<EvidenceStore, string, string>;
  readonly leaves: PrunedLeaves;
  readonly walk: ChainWalk;
  readonly actions: ActionRules;
  readonly tree: TreeRules;
  readonly retention: RetentionRules;
  readonly mark: Mark | undefined;
}

const progressEvery = 256;

/**
 * Checks what is left before the cut: each leaf takes its part in the tree, which every checkpoint then signs for; each
 * record that is there, because it stays or because its turn to be deleted has not come, is the one of its leaf.
 * Leaves `walk` before the first record that was kept.
 */
export class PrunedWalk {
  readonly #parts: PrunedWalkParts;
  #next: readonly [key: string, text: string] | undefined;

  constructor(parts: PrunedWalkParts) {
    this.#parts = parts;
  }

  async findBad(onProgress: (checked: number) => void): Promise<FirstBad | undefined> {
    const { leaves, entries, walk } = this.#parts;
    const { firstKept } = leaves.prefix;
    this.#next = await entries.next();
    for (let seq = 0; seq < firstKept; seq++) {
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

  async #checkPlace(seq: number): Promise<Fault | undefined> {
    const { leaves, tree, tenant, mark } = this.#parts;
    try {
      const leaf = await leaves.at(seq);
      if (seq === mark?.seq && !isLeafOf(leaf, mark.head))
        return fault("forked", "the record differs from the high-water mark");
      if (this.#next?.[0] === recordKey(tenant, seq)) return await this.#checkRecord(seq, leaf, this.#next);
      if (seq === 0) return fault("missing_record", "the genesis record is missing");
      return await tree.checkPruned(seq, leaf);
    } catch (error) {
      if (error instanceof TreeFault) return fault("bad_inclusion", error.message);
      throw error;
    }
  }

  async #checkRecord(seq: number, leaf: Buffer, [key, text]: readonly [string, string]): Promise<Fault | undefined> {
    const { leaves, tree, walk, actions, retention, entries } = this.#parts;
    if (seq > 0) walk.skip(seq, await leaves.at(seq - 1));
    const step = walk.accept(key, text);
    if (isFault(step)) return step;
    if (!isLeafOf(leaf, step.hash)) return fault("bad_inclusion", "the record is not the one of the tree");
    this.#next = await entries.next();
    actions.noteKill(step.record);
    return retention.check(step.record) ?? (await tree.check(step.record, step.hash));
  }
}
