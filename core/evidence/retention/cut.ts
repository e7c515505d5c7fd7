import type { Pace } from "../../store/pace.ts";
import { recordKey, recordRange } from "../record/key-space.ts";
import type { ActionRecord, EventRecord, EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import type { ChainView } from "../record/store-view.ts";
import { isKept } from "./retention-rule.ts";

/** A place at which a chain may be cut. */
export interface Cut {
  /** The first record that is kept together with all that follow. */
  readonly firstKept: number;
  /** Records before it that are deleted. */
  readonly removed: number;
  /** The first record that is not older than asked for; null where all are older. */
  readonly firstYounger: number | null;
}

/** Beyond this many unfinished actions and approvals, the search stops: the cut stays before them. */
const maxUnfinished = 100_000;
const chunkEntries = 256;

/**
 * The latest cut, at `from` or after it, before the first record that is not older than `before`, that goes through no
 * action and no approval. Reads the records from `from` on that are older, one after another.
 */
export async function findCut(
  view: ChainView,
  tenant: string,
  from: number,
  before: string,
  pace?: Pace,
): Promise<Cut> {
  const unfinished = new Unfinished();
  let cut = { firstKept: from, removed: 0 };
  let removed = 0;
  await using entries = view.read({ ...recordRange(tenant), gte: recordKey(tenant, from) });
  for (;;) {
    const chunk = await entries.nextv(chunkEntries);
    if (chunk.length === 0) return { ...cut, firstYounger: null };
    for (const [, text] of chunk) {
      await pace?.rest();
      const record = JSON.parse(text) as EvidenceRecord;
      if (record.time >= before) return { ...cut, firstYounger: record.seq };
      unfinished.take(record);
      if (!isKept(record)) removed++;
      if (unfinished.count === 0) cut = { firstKept: record.seq + 1, removed };
      if (unfinished.count > maxUnfinished) return { ...cut, firstYounger: record.seq };
    }
  }
}

interface OpenApproval {
  isOver: boolean;
  /** Break-glass was used, and its post-mortem is missing. */
  owesPostMortem: boolean;
}

/**
 * Actions and approvals of the records so far that later records may continue: actions without outcome, and approvals from the
 * decision that was held to their end, or to the post-mortem where break-glass was used.
 */
class Unfinished {
  readonly #actions = new Set<string>();
  readonly #approvals = new Map<string, OpenApproval>();

  get count(): number {
    return this.#actions.size + this.#approvals.size;
  }

  take(record: EvidenceRecord): void {
    if (isAction(record)) this.#takeAction(record);
    else if (record.kind === "approval") this.#takeApproval(record.detail);
  }

  #takeAction({ action, approval, effect, kind }: ActionRecord): void {
    if (kind === "outcome") this.#actions.delete(action.id);
    else if (effect === "dispatched") this.#actions.add(action.id);
    if (approval?.state === "pending") this.#open(approval.id);
    if (approval?.state === "consumed") this.#end(approval.id);
  }

  #takeApproval({ break_glass, event, id }: EventRecord["detail"]): void {
    if (typeof id !== "string") return;
    if (event === "denied" || event === "expired") this.#end(id);
    else if (event === "post_mortem") this.#account(id);
    else if (break_glass === undefined) this.#open(id);
    else this.#open(id).owesPostMortem = true;
  }

  #open(id: string): OpenApproval {
    const approval = this.#approvals.get(id) ?? { isOver: false, owesPostMortem: false };
    this.#approvals.set(id, approval);
    return approval;
  }

  #end(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval !== undefined) approval.isOver = true;
    this.#forgetFinished(id);
  }

  #account(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval !== undefined) approval.owesPostMortem = false;
    this.#forgetFinished(id);
  }

  #forgetFinished(id: string): void {
    const approval = this.#approvals.get(id);
    if (approval?.isOver && !approval.owesPostMortem) this.#approvals.delete(id);
  }
}
