import { sha256Hex } from "../../action/canonical-json.ts";
import { recordKey } from "../record/key-space.ts";
import { type ChainFault, chainFault, isChainFault } from "../record/reason.ts";
import { type EvidenceRecord, noHash } from "../record/record.ts";
import { readRecord } from "../record/record-text.ts";
import { isLeafOf } from "../tree/merkle.ts";

/** The last record of a chain; `seq` −1 where there is none. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

export const emptyHead: ChainHead = { seq: -1, hash: noHash };

export interface Step {
  readonly record: EvidenceRecord;
  readonly hash: string;
}

/**
 * Follows one tenant's chain record by record: canonical bytes, this tenant, this chain, no gap in the sequence,
 * every link, a genesis first and only first, writer epochs that never fall. Holds one record's worth of memory.
 */
export class ChainWalk {
  readonly #tenant: string;
  #chain: string | null;
  #seq: number;
  /** Null before the first record of a walk that starts inside the chain, and after records that were pruned. */
  #hash: string | null;
  /** Leaf of the record before, where that is all that is left of it. */
  #leaf: Buffer | null = null;
  #epoch = 0;

  /** Starts before record `from`. With `chain` null, the first record names the chain. */
  constructor(tenant: string, chain: string | null, from: number) {
    this.#tenant = tenant;
    this.#chain = chain;
    this.#seq = from - 1;
    this.#hash = from === 0 ? noHash : null;
  }

  get head(): ChainHead {
    return { seq: this.#seq, hash: this.#hash ?? noHash };
  }

  /** Passes over pruned records; `leaf` is that of the last one, which the next record's link must lead to. */
  skip(to: number, leaf: Buffer): void {
    if (to === this.#seq + 1) return;
    this.#seq = to - 1;
    this.#hash = null;
    this.#leaf = leaf;
  }

  /** Accepts the next key and text of the store, or returns their fault and stays. */
  accept(key: string, text: string): Step | ChainFault {
    const record = readRecord(text);
    if (isChainFault(record)) return record;
    const broken = this.#place(key, record) ?? this.#link(record);
    if (broken !== undefined) return broken;
    const hash = sha256Hex(text);
    this.#chain = record.chain;
    this.#seq = record.seq;
    this.#hash = hash;
    this.#leaf = null;
    this.#epoch = record.writer.epoch;
    return { record, hash };
  }

  #place(key: string, record: EvidenceRecord): ChainFault | undefined {
    const expected = this.#seq + 1;
    if (record.tenant !== this.#tenant)
      return chainFault("foreign_tenant", `expected tenant \`${this.#tenant}\`, got another`);
    if (key !== recordKey(this.#tenant, expected))
      return chainFault("seq_gap", `expected record ${expected}, got a gap`);
    if (record.seq !== expected) return chainFault("seq_gap", `expected \`seq\` ${expected}, got ${record.seq}`);
    if ((record.kind === "genesis") !== (expected === 0))
      return chainFault("bad_schema", "expected a genesis record first, and only first");
    return undefined;
  }

  #link(record: EvidenceRecord): ChainFault | undefined {
    if (this.#chain !== null && record.chain !== this.#chain)
      return chainFault("foreign_chain", "expected the same chain, got another");
    if (!this.#follows(record.prev_hash))
      return chainFault("bad_prev_hash", "`prev_hash` is not the digest of the record before");
    if (record.writer.epoch < this.#epoch)
      return chainFault("stale_epoch", `expected writer epoch ${this.#epoch} or later, got an earlier one`);
    return undefined;
  }

  #follows(prevHash: string): boolean {
    if (this.#hash !== null) return prevHash === this.#hash;
    return this.#leaf === null || isLeafOf(this.#leaf, prevHash);
  }
}
