import type { Operation } from "../kernel/operation.ts";
import {
  dataKeyKey,
  disclosureKey,
  durably,
  type EvidenceStore,
  eventKey,
  heldKey,
  recordKey,
  sessionKey,
  sessionOrderKey,
  sessionRecordKey,
} from "./key-space.ts";
import type { ActionRecord, EvidenceRecord } from "./record.ts";
import { isAction } from "./record-text.ts";
import { isKept } from "./retention-rule.ts";
import { readSummary } from "./session-head.ts";

const atOnce = 256;

/**
 * Deletes every record before the cut that does not stay, with its private fields and all that leads to it. Each batch
 * leaves the rest as good as it was: who is stopped half way begins again. Returns how many records went.
 */
export async function sweepPruned(
  store: EvidenceStore,
  tenant: string,
  firstKept: number,
  onProgress: (deleted: number) => void,
): Promise<number> {
  const sweep = new Sweep(store, tenant, firstKept);
  let deleted = 0;
  let gte = recordKey(tenant, 0);
  for (;;) {
    const texts = await store.values({ gte, lt: recordKey(tenant, firstKept), limit: atOnce }).all();
    const records = texts.map((text) => JSON.parse(text) as EvidenceRecord);
    const last = records.at(-1);
    if (last === undefined) return deleted;
    const going = records.filter((record) => !isKept(record));
    if (going.length > 0) await store.batch(await sweep.operations(going), durably);
    deleted += going.length;
    onProgress(deleted);
    gte = recordKey(tenant, last.seq + 1);
  }
}

class Sweep {
  readonly #store: EvidenceStore;
  readonly #tenant: string;
  readonly #firstKept: number;

  constructor(store: EvidenceStore, tenant: string, firstKept: number) {
    this.#store = store;
    this.#tenant = tenant;
    this.#firstKept = firstKept;
  }

  async operations(records: readonly EvidenceRecord[]): Promise<Operation[]> {
    return (await Promise.all(records.map((record) => this.#forget(record)))).flat();
  }

  async #forget(record: EvidenceRecord): Promise<Operation[]> {
    const { kind, seq } = record;
    const more = isAction(record)
      ? await this.#forgetAction(record)
      : [this.#delete(eventKey(this.#tenant, kind, seq))];
    return [this.#delete(recordKey(this.#tenant, seq)), ...more];
  }

  /**
   * Where the session goes on after the cut, the last entry before it stays: the record after is checked by what it
   * leads to. The session itself goes with its last record, and not before, so that it cannot begin anew meanwhile.
   */
  async #forgetAction({ seq, session: { id, index } }: ActionRecord): Promise<Operation[]> {
    const indexAt = (at: number): string => sessionRecordKey(this.#tenant, id, at);
    const operations = [disclosureKey, dataKeyKey, heldKey].map((keyOf) => keyOf(this.#tenant, seq));
    if (index > 0) operations.push(indexAt(index - 1));
    const next = await this.#store.get(indexAt(index + 1));
    if (next === undefined || Number(next) < this.#firstKept) operations.push(indexAt(index));
    const key = sessionKey(this.#tenant, id);
    const summary = readSummary((await this.#store.get(key)) ?? "");
    if (summary?.last_seq === seq) operations.push(key, sessionOrderKey(this.#tenant, summary.first_seq));
    return operations.map((each) => this.#delete(each));
  }

  #delete(key: string): Operation {
    return { type: "del", key };
  }
}
