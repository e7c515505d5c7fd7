import type { JsonObject } from "../../action/json.ts";
import { type ChainFault, chainFault, type FirstBad } from "../record/reason.ts";
import type { EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";

/** Kinds of events that pruning keeps: later records cannot be checked, or explained, without them. */
const keptKinds: ReadonlySet<string> = new Set([
  "genesis",
  "key",
  "configuration",
  "extension",
  "redaction",
  "retention",
]);
/** Session events that matter for as long as the session lives. */
const keptSessionEvents: ReadonlySet<unknown> = new Set(["killed", "released"]);

/** True for a record that pruning keeps. */
export function isKept(record: EvidenceRecord): boolean {
  if (isAction(record)) return false;
  return keptKinds.has(record.kind) || (record.kind === "session" && keptSessionEvents.has(record.detail.event));
}

/**
 * Checks that every missing record is accounted for: the chain's own `retention` records name
 * the cut and the number of deleted records; any other missing record was removed. Holds a few numbers.
 */
export class RetentionRules {
  readonly #firstKept: number;
  /** By the retention records. */
  #cut = 0;
  #removed = 0;
  /** Records before the cut that stayed. */
  #stayed = 0;

  /** `firstKept` is 0 for a chain that begins at its genesis. */
  constructor(firstKept: number) {
    this.#firstKept = firstKept;
  }

  /** Accepts the next record that is there; returns the rule it breaks. */
  check(record: EvidenceRecord): ChainFault | undefined {
    if (record.seq < this.#firstKept && isKept(record)) this.#stayed++;
    if (record.kind !== "retention" || isAction(record)) return undefined;
    const { firstKept, removed } = readPruning(record.detail);
    if (!(firstKept > this.#cut && firstKept <= record.seq && removed > 0 && removed < firstKept)) {
      return chainFault("bad_schema", "expected a retention record to name a later cut, and how many records went");
    }
    this.#cut = firstKept;
    this.#removed += removed;
    return undefined;
  }

  /** After the last record: returns the fault where a missing record is not accounted for. */
  findUnsaid(): FirstBad | undefined {
    const cut = this.#firstKept;
    if (this.#cut !== cut) {
      const named = this.#cut === 0 ? "none" : `record ${this.#cut}`;
      const detail = `expected the last retention record to name record ${cut} as the first kept, got ${named}`;
      return { seq: 0, reason: "missing_record", detail };
    }
    const stayed = cut - this.#removed;
    if (this.#stayed === stayed) return undefined;
    const detail = `expected ${stayed} records to have stayed before record ${cut}, got ${this.#stayed}`;
    return { seq: 0, reason: "missing_record", detail };
  }
}

/** The detail of a `retention` record. */
export function pruningDetail(pruning: {
  readonly before: string;
  readonly firstKept: number;
  readonly removed: number;
  readonly by: string;
  readonly reason: string | undefined;
}): JsonObject {
  const { before, firstKept, removed, by, reason } = pruning;
  const detail = { event: "pruned", before, first_kept: firstKept, records: removed, by };
  return reason === undefined ? detail : { ...detail, reason };
}

function readPruning({ event, first_kept, records }: JsonObject): { firstKept: number; removed: number } {
  const isPruning = event === "pruned" && Number.isSafeInteger(first_kept) && Number.isSafeInteger(records);
  return isPruning ? { firstKept: Number(first_kept), removed: Number(records) } : { firstKept: 0, removed: 0 };
}
