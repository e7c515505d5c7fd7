import type { BatchOperation } from "../../action/commit-hook.ts";
import type { Pace } from "../../store/pace.ts";
import type { Writer } from "../chain/writer.ts";
import { type EvidenceStore, eventKey, recordKey, recordParts, sessionKey } from "../record/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import { isKept } from "./retention-rule.ts";

interface RecordSweepParts {
  readonly store: EvidenceStore;
  readonly writer: Writer;
  readonly tenant: string;
  /** Records before it are deleted. */
  readonly firstKept: number;
}

/** Records that share a batch; fewer where appended records wait for it. */
const atOnce = { alone: 256, serving: 64 };

/**
 * Deletes every record before a cut that is not kept, with its private fields and its index entries. Each batch
 * leaves the rest sound, so that an interrupted prune can be rerun.
 */
export class RecordSweep {
  readonly #parts: RecordSweepParts;

  constructor(parts: RecordSweepParts) {
    this.#parts = parts;
  }

  /** Returns the number of deleted records. */
  async run(onProgress: (deleted: number) => void, pace: Pace | undefined): Promise<number> {
    const { store, tenant, firstKept } = this.#parts;
    const limit = pace === undefined ? atOnce.alone : atOnce.serving;
    let deleted = 0;
    let gte = recordKey(tenant, 0);
    for (;;) {
      const texts = await store.values({ gte, lt: recordKey(tenant, firstKept), limit }).all();
      const records = texts.map((text) => JSON.parse(text) as EvidenceRecord);
      const last = records.at(-1);
      if (last === undefined) return deleted;
      const going = records.filter((record) => !isKept(record));
      if (going.length > 0) await this.#delete(going);
      deleted += going.length;
      onProgress(deleted);
      gte = recordKey(tenant, last.seq + 1);
      await pace?.rest();
    }
  }

  /**
   * Keeps the last entry before the cut of a session that continues after it: the next record is checked by what it
   * leads to. A session is deleted with its last record, and not before, so that it cannot begin anew meanwhile.
   */
  async #delete(records: readonly EvidenceRecord[]): Promise<void> {
    const { store, writer, tenant, firstKept } = this.#parts;
    const actions = records.filter(isAction);
    const nexts = await store.getMany(actions.map((action) => indexKey(action, 1)));
    const keys = records.map((record) => recordKey(tenant, record.seq));
    const lasts: ActionRecord[] = [];
    for (const [at, action] of actions.entries()) {
      for (const part of recordParts) if (part !== "record") keys.push(recordKey(tenant, action.seq, part));
      if (action.session.index > 0) keys.push(indexKey(action, -1));
      const next = nexts[at];
      if (next === undefined) lasts.push(action);
      else if (Number(next) < firstKept) keys.push(indexKey(action, 0));
    }
    for (const record of records) if (!isAction(record)) keys.push(eventKey(tenant, record.kind, record.seq));
    await writer.deleteRecords(keys.map(deletion), lasts);
  }
}

/** The index entry of the record so many places after an action's in its session. */
function indexKey({ tenant, session: { id, index } }: ActionRecord, offset: -1 | 0 | 1): string {
  return sessionKey(tenant, id, index + offset);
}

function deletion(key: string): BatchOperation {
  return { type: "del", key };
}
