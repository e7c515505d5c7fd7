import type { Pace } from "../../store/pace.ts";
import type { PlacedAction } from "../chain/writer.ts";
import { pieceKeys } from "../private/entry-piece.ts";
import { eventKey, recordKey, recordParts, sessionKey } from "../record/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import type { ChainView } from "../record/store-view.ts";
import { isKept } from "./retention-rule.ts";

/** Some records before a cut that are not kept, and what goes with them. */
export interface GoingRecords {
  readonly count: number;
  /** Keys of the records, of their private fields and of their index entries. */
  readonly keys: readonly string[];
  /** Actions that nothing followed in their session when this was read. */
  readonly lasts: readonly PlacedAction[];
}

/** Records that are read at once; fewer where appended records wait for their deletion. */
const atOnce = { alone: 256, serving: 64 };

/**
 * Reads every record before a cut that is not kept, and calls `onGoing` with some at a time; it resolves when they are
 * deleted. Each deletion leaves the rest sound, so that an interrupted prune can be rerun. What a session appends in between
 * changes nothing but `lasts`, which the writer looks at again.
 */
export async function findGoing(
  view: ChainView,
  tenant: string,
  firstKept: number,
  onGoing: (going: GoingRecords) => Promise<void>,
  pace: Pace | undefined,
): Promise<void> {
  const limit = pace === undefined ? atOnce.alone : atOnce.serving;
  let gte = recordKey(tenant, 0);
  for (;;) {
    const texts = await view.values({ gte, lt: recordKey(tenant, firstKept), limit });
    const records = texts.map((text) => JSON.parse(text) as EvidenceRecord);
    const last = records.at(-1);
    if (last === undefined) return;
    const going = records.filter((record) => !isKept(record));
    if (going.length > 0) await onGoing(await planDeletion(view, going, firstKept));
    gte = recordKey(tenant, last.seq + 1);
    await pace?.rest();
  }
}

/**
 * Keeps the last entry before the cut of a session that continues after it: the next record is checked by what it
 * leads to. A session is deleted with its last record, and not before, so that it cannot begin anew meanwhile.
 */
async function planDeletion(
  view: ChainView,
  records: readonly EvidenceRecord[],
  firstKept: number,
): Promise<GoingRecords> {
  const actions = records.filter(isAction);
  const nexts = await view.getMany(actions.map((action) => indexKey(action, 1)));
  const keys = records.map((record) => recordKey(record.tenant, record.seq));
  keys.push(...(await findPieces(view, records)));
  const lasts: PlacedAction[] = [];
  for (const [at, action] of actions.entries()) {
    const { tenant, seq, session } = action;
    for (const part of recordParts) if (part !== "record") keys.push(recordKey(tenant, seq, part));
    if (session.index > 0) keys.push(indexKey(action, -1));
    const next = nexts[at];
    if (next === undefined) lasts.push({ tenant, seq, session: { id: session.id, index: session.index } });
    else if (Number(next) < firstKept) keys.push(indexKey(action, 0));
  }
  for (const record of records) if (!isAction(record)) keys.push(eventKey(record.tenant, record.kind, record.seq));
  return { count: records.length, keys, lasts };
}

/** Lists the keys of the pieces of neighbouring records. */
async function findPieces(view: ChainView, records: readonly EvidenceRecord[]): Promise<readonly string[]> {
  const [first, last] = [records[0], records.at(-1)];
  if (first === undefined || last === undefined) return [];
  const { tenant } = first;
  const range = { gte: recordKey(tenant, first.seq, "pieces"), lt: recordKey(tenant, last.seq + 1, "pieces") };
  const places = await view.values(range);
  return places.flatMap((place) => pieceKeys(tenant, place));
}

/** The index entry of the record so many places after an action's in its session. */
function indexKey({ tenant, session: { id, index } }: ActionRecord, offset: -1 | 0 | 1): string {
  return sessionKey(tenant, id, index + offset);
}
