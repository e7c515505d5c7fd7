import type { VerifyingKey } from "../kernel/signing-key.ts";
import type { EventRecord, EvidenceRecord } from "./record.ts";
import { readGenesisKey, readRotationKey } from "./rotation.ts";

/** A key and the sizes of the chain it signs for, both included; `toSize` null while it is the current one. */
export interface KeyTenure {
  readonly key: VerifyingKey;
  readonly fromSize: number;
  readonly toSize: number | null;
}

/**
 * Which key was valid when, as the chain itself says: its genesis record and its rotations, taken in order.
 * A key signs up to the checkpoint over its own rotation; that one carries both signatures.
 */
export class KeyHistory {
  readonly #tenures: KeyTenure[] = [];

  /** Takes the next record; false where it should introduce a key, and no valid one. */
  accept(record: EvidenceRecord): boolean {
    if (record.kind === "genesis") return this.#begin(record as EventRecord);
    return record.kind === "key" ? this.#rotate(record as EventRecord) : true;
  }

  get tenures(): readonly KeyTenure[] {
    return this.#tenures;
  }

  get current(): VerifyingKey | undefined {
    return this.#tenures.at(-1)?.key;
  }

  /** The keys that must have signed a checkpoint of this size: one, or two over a rotation; none before the genesis. */
  keysAt(size: number): VerifyingKey[] {
    return this.#tenures
      .filter(({ fromSize, toSize }) => fromSize <= size && size <= (toSize ?? size))
      .map(({ key }) => key);
  }

  #begin(record: EventRecord): boolean {
    const key = readGenesisKey(record.detail);
    if (key === undefined || this.#tenures.length > 0) return false;
    this.#tenures.push({ key, fromSize: 1, toSize: null });
    return true;
  }

  #rotate(record: EventRecord): boolean {
    const last = this.#tenures.at(-1);
    const place = { chain: record.chain, seq: record.seq, prevHash: record.prev_hash };
    const key = last === undefined ? undefined : readRotationKey(record.detail, place, last.key);
    if (last === undefined || key === undefined) return false;
    if (this.#tenures.some((tenure) => tenure.key.id === key.id)) return false; // a key that was handed over is over
    const size = record.seq + 1;
    this.#tenures[this.#tenures.length - 1] = { ...last, toSize: size };
    this.#tenures.push({ key, fromSize: size, toSize: null });
    return true;
  }
}
