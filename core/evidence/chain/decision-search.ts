import { isJsonObject, parseKept } from "../../action/json.ts";
import { type EvidenceStore, recordKey, recordRange, seqIn } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import type { ActionRecord, EvidenceRecord } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import type { Page, PageRequest } from "./session-record.ts";

/** Time before and after the time in its id within which a decision's record is searched: its id is older than its record. */
const earlierMs = 2_000;
const laterMs = 60_000;
/** Records that are searched at most: more than a disk writes in that time. */
const maxRead = 200_000;
const readAtOnce = 500;
const idShape = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Reads the records of a session from its index `cursor` on. */
interface SessionReader {
  records(tenant: string, session: string, page: PageRequest): Promise<Page<EvidenceRecord>>;
}

interface DecisionSearchParts {
  readonly store: EvidenceStore;
  readonly ledger: SessionReader;
}

/** Finds the record of a decision by the time that its id bears: there is no index of decisions. */
export class DecisionSearch {
  readonly #parts: DecisionSearchParts;

  constructor(parts: DecisionSearchParts) {
    this.#parts = parts;
  }

  /**
   * The record of the decision of that id, or of the one about the input of the action of that id. Undefined where there
   * is none, or none within a minute of that time. Rejects with EVIDENCE_UNAVAILABLE where the chain is refused.
   */
  async find(tenant: string, id: string): Promise<ActionRecord | undefined> {
    if (!idShape.test(id)) return undefined;
    const timeMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    const found = await this.#scan(tenant, id, timeMs);
    if (found === undefined) return undefined;
    // A record found in the store alone is a hint: the ledger reads it again and checks whose it is.
    const { session } = found;
    const { items } = await this.#parts.ledger.records(tenant, session.id, { limit: 1, cursor: String(session.index) });
    const [record] = items;
    return record !== undefined && isAction(record) && isAbout(record, id) ? record : undefined;
  }

  async #scan(tenant: string, id: string, timeMs: number): Promise<ActionRecord | undefined> {
    const gte = recordKey(tenant, await this.#firstSince(tenant, timeMs - earlierMs));
    const records = this.#parts.store.values({ ...recordRange(tenant), gte });
    try {
      for (let read = 0; read < maxRead; read += readAtOnce) {
        const texts = await records.nextv(readAtOnce);
        const record = texts
          .filter((text) => text.includes(id))
          .map(readAction)
          .find((each) => isAbout(each, id));
        if (record !== undefined) return record;
        const last = texts.at(-1);
        if (last === undefined || timeOf(last) > timeMs + laterMs) return undefined;
      }
    } finally {
      await records.close();
    }
    return undefined;
  }

  /** The number of the first record that is not older, found by halves; the one after the last where all are. */
  async #firstSince(tenant: string, timeMs: number): Promise<number> {
    const { store } = this.#parts;
    const range = recordRange(tenant);
    const [lastKey] = await store.keys({ ...range, reverse: true, limit: 1 }).all();
    let [low, high] = [0, lastKey === undefined ? 0 : seqIn(lastKey) + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      // For a pruned record, the next one is read.
      const [text] = await store.values({ ...range, gte: recordKey(tenant, middle), limit: 1 }).all();
      if (text === undefined || timeOf(text) >= timeMs) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function readAction(text: string): ActionRecord | undefined {
  const record = readRecord(text);
  return isChainFault(record) || !isAction(record) ? undefined : record;
}

function isAbout(record: ActionRecord | undefined, id: string): boolean {
  if (record === undefined) return false;
  return record.evaluation?.id === id || (record.kind === "decision" && record.action.id === id);
}

function timeOf(text: string): number {
  const record = parseKept(text);
  const time = isJsonObject(record) && typeof record.time === "string" ? Date.parse(record.time) : Number.NaN;
  return Number.isNaN(time) ? 0 : time;
}
