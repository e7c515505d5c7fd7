import { sha256Hex } from "../kernel/digest.ts";
import { recordKey } from "./key-space.ts";
import { type EvidenceRecord, noHash } from "./record.ts";
import { isFault, readRecord, type TextFault } from "./record-text.ts";

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
  /** Null before the first record of a walk that starts inside the chain: its link is not known. */
  #hash: string | null;
  #epoch = 0;

  /** Starts before record `from`. `chain` null takes the chain's name from the first record. */
  constructor(tenant: string, chain: string | null, from: number) {
    this.#tenant = tenant;
    this.#chain = chain;
    this.#seq = from - 1;
    this.#hash = from === 0 ? noHash : null;
  }

  get head(): ChainHead {
    return { seq: this.#seq, hash: this.#hash ?? noHash };
  }

  /** Takes the next key and text of the store; says what is wrong with them, or moves on. */
  accept(key: string, text: string): Step | TextFault {
    const record = readRecord(text);
    if (isFault(record)) return record;
    const fault = this.#place(key, record) ?? this.#link(record);
    if (fault !== undefined) return { fault };
    const hash = sha256Hex(text);
    this.#chain = record.chain;
    this.#seq = record.seq;
    this.#hash = hash;
    this.#epoch = record.writer.epoch;
    return { record, hash };
  }

  #place(key: string, record: EvidenceRecord): string | undefined {
    const expected = this.#seq + 1;
    if (record.tenant !== this.#tenant) return `expected tenant \`${this.#tenant}\`, got another`;
    if (key !== recordKey(this.#tenant, expected)) return `expected record ${expected}, got a gap`;
    if (record.seq !== expected) return `expected \`seq\` ${expected}, got ${record.seq}`;
    if ((record.kind === "genesis") !== (expected === 0)) return "expected a genesis record first, and only first";
    return undefined;
  }

  #link(record: EvidenceRecord): string | undefined {
    if (this.#chain !== null && record.chain !== this.#chain) return "expected the same chain, got another";
    if (this.#hash !== null && record.prev_hash !== this.#hash)
      return "`prev_hash` is not the digest of the record before";
    if (record.writer.epoch < this.#epoch) return `expected writer epoch ${this.#epoch} or later, got an earlier one`;
    return undefined;
  }
}
