import { KeyHistory } from "../key/key-history.ts";
import { checkpointAtKey, checkpointKey, keyRecordKey, tileKey } from "../record/key-space.ts";
import { type ChainFault, chainFault, type FirstBad } from "../record/reason.ts";
import type { EvidenceRecord } from "../record/record.ts";
import type { EntryReader, Reader } from "../record/store-view.ts";
import { isCheckpointSignedBy, parseCheckpoint } from "../tree/checkpoint.ts";
import { isLeafOf, leafHash, TileTree } from "../tree/merkle.ts";

/** The last accepted record; its time is unknown where it was pruned. */
interface Last {
  readonly seq: number;
  readonly leaf: Buffer;
  readonly time: string | undefined;
}

/**
 * Checks a chain's tree and checkpoints against its records: every tile is the one the records make, every
 * stored checkpoint has the root and the last record of its size, signed by the keys that the chain had introduced by
 * then. Memory does not grow with the chain, but by some 100 bytes a rotation.
 */
export class TreeRules {
  readonly #reader: Reader;
  readonly #tenant: string;
  /** The stored checkpoints that stay, in order. */
  readonly #stored: EntryReader;
  readonly #tree = new TileTree();
  readonly #history = new KeyHistory();
  #next: readonly [key: string, note: string] | undefined;
  #chain = "";
  #last: Last | undefined;

  private constructor(reader: Reader, tenant: string, stored: EntryReader) {
    this.#reader = reader;
    this.#tenant = tenant;
    this.#stored = stored;
  }

  static async begin(reader: Reader, tenant: string, stored: EntryReader): Promise<TreeRules> {
    const rules = new TreeRules(reader, tenant, stored);
    rules.#next = await stored.next();
    return rules;
  }

  /** The keys of the chain, as far as it was read. */
  get keys(): KeyHistory {
    return this.#history;
  }

  /** Accepts the next record of the chain; returns the rule it breaks. */
  async check(record: EvidenceRecord, hash: string): Promise<ChainFault | undefined> {
    this.#chain = record.chain;
    const introduces = record.kind === "genesis" || record.kind === "key";
    const broken = introduces ? await this.#checkKey(record) : undefined;
    return broken ?? (await this.#grow({ seq: record.seq, leaf: leafHash(hash), time: record.time }));
  }

  /** Accepts the leaf of the next record where the record was pruned. */
  async checkPruned(seq: number, leaf: Buffer): Promise<ChainFault | undefined> {
    return this.#grow({ seq, leaf, time: undefined });
  }

  /** After the last record: the latest checkpoint must be over it, and none over more. */
  async checkEnd(): Promise<FirstBad | undefined> {
    const { size: seq } = this.#tree.range;
    const last = this.#last;
    if (this.#next !== undefined) {
      return { seq, reason: "missing_record", detail: "the chain ends before one of its checkpoints" };
    }
    const note = await this.#reader.get(checkpointKey(this.#tenant));
    if (last === undefined) {
      return note === undefined
        ? undefined
        : { seq, reason: "missing_record", detail: "there is a checkpoint over nothing" };
    }
    const broken =
      note === undefined ? chainFault("bad_checkpoint", "the chain has no checkpoint") : this.#misfit(note, last);
    return broken === undefined ? undefined : { seq: last.seq, reason: broken.reason, detail: broken.fault };
  }

  async #grow(last: Last): Promise<ChainFault | undefined> {
    this.#last = last;
    for (const { level, index, hashes } of this.#tree.append(last.leaf)) {
      const stored = await this.#reader.get(tileKey(this.#tenant, level, index));
      if (stored !== hashes.toString("hex")) {
        return chainFault("bad_inclusion", `tile ${index} of level ${level} is not that of the records`);
      }
    }
    return this.#checkStored(last);
  }

  async #checkKey(record: EvidenceRecord): Promise<ChainFault | undefined> {
    if (!this.#history.accept(record)) {
      return record.kind === "genesis"
        ? chainFault("unknown_key", "expected a genesis record that introduces a signing key")
        : chainFault("bad_rotation", "expected a rotation signed by the old and the new key");
    }
    const listed = await this.#reader.get(keyRecordKey(this.#tenant, record.seq));
    if (listed === this.#history.current?.id) return undefined;
    return chainFault("unknown_key", "the list of signing keys does not name the record's key");
  }

  async #checkStored(last: Last): Promise<ChainFault | undefined> {
    if (this.#next === undefined || this.#next[0] !== checkpointAtKey(this.#tenant, this.#tree.range.size))
      return undefined;
    const [, note] = this.#next;
    this.#next = await this.#stored.next();
    return this.#misfit(note, last);
  }

  #misfit(note: string, { leaf, time }: Last): ChainFault | undefined {
    const checkpoint = parseCheckpoint(note);
    if (checkpoint === undefined) return chainFault("bad_checkpoint", "expected a checkpoint, got another text");
    if (checkpoint.chain !== this.#chain)
      return chainFault("foreign_chain", "expected a checkpoint of this chain, got one of another");
    const { size } = this.#tree.range;
    if (checkpoint.size !== size)
      return chainFault(
        "bad_checkpoint",
        `expected a checkpoint over ${size} records, got one over ${checkpoint.size}`,
      );
    if (!isLeafOf(leaf, checkpoint.head) || checkpoint.time !== (time ?? checkpoint.time))
      return chainFault("head_mismatch", "the checkpoint is over another last record");
    if (!checkpoint.root.equals(this.#tree.range.root()))
      return chainFault("bad_inclusion", "the checkpoint's root is not that of the records");
    const signed = isCheckpointSignedBy(checkpoint, this.#history.keysAt(size));
    return signed ? undefined : chainFault("bad_signature", "the checkpoint is not signed by the key of its size");
  }
}
