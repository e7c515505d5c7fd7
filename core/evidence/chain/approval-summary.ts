import { type ApprovalState, isFinal, type RecordedApprovalState } from "../../action/approval.ts";
import { isJsonObject, parseKept } from "../../action/json.ts";
import type { WrappingKey } from "../key/wrapping-key.ts";
import type { EvidenceRecord } from "../record/record.ts";
import type { Sealed } from "./seal.ts";

/** The approvals that are not over, as of one record of a chain: a start reads the records from there on. */
export interface ApprovalSummary {
  readonly seq: number;
  /** SHA-256 (hex) of that record. */
  readonly hash: string;
  /** The latest time in any record since the oldest request; RFC 3339. */
  readonly latest: string;
  readonly states: ReadonlyMap<string, RecordedApprovalState>;
}

/** Records between two summaries: what a start reads at most, and one batch. */
export const recordsPerSummary = 8_192;
const purpose = "approval-summary-v1";

/**
 * Follows the approvals of a chain as its records are appended, and sums them up now and then. What a summary leaves out
 * ends at the next start, as if its entry were made up; so one that lacks something lets nothing pass.
 */
export class ApprovalTracker {
  /** The approvals that are not over. Changed by this tracker alone. */
  readonly states: ReadonlyMap<string, RecordedApprovalState>;
  readonly #states = new Map<string, RecordedApprovalState>();
  #latest = "";
  #summedUp: number | null = null;
  #isStopped = false;

  constructor() {
    this.states = this.#states;
  }

  /** Takes over what a start read. */
  restore(states: ReadonlyMap<string, RecordedApprovalState>, latest: string): void {
    for (const [id, state] of states) {
      if (!isFinal(state.state) && !this.#states.has(id)) this.#states.set(id, state);
    }
    if (latest > this.#latest) this.#latest = latest;
  }

  /** Stops for good: a record that it followed may not be on disk. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Follows the next record; a record about no approval may be left out while there are no `states`. Returns the text of a summary
   * where one is due; it commits with the record.
   */
  take({ record, hash }: Sealed, key: WrappingKey): string | undefined {
    const { seq, time } = record;
    if (time > this.#latest) this.#latest = time;
    const id = applyApproval(this.#states, record);
    if (id !== undefined && isOver(this.#states.get(id))) this.#states.delete(id);
    this.#summedUp ??= seq;
    if (seq - this.#summedUp < recordsPerSummary || this.#isStopped) return undefined;
    this.#summedUp = seq;
    if (this.#states.size === 0) return undefined;
    const text = JSON.stringify({ seq, hash, latest: this.#latest, states: [...this.#states] });
    return `${text}\n${key.authenticate(purpose, text)}`;
  }
}

function isOver(state: RecordedApprovalState | undefined): boolean {
  return state !== undefined && isFinal(state.state);
}

/** Parses the text of a summary; undefined for one that this chain's key did not authenticate. */
export function parseApprovalSummary(text: string, key: WrappingKey): ApprovalSummary | undefined {
  const [line = "", mac] = text.split("\n");
  const value = mac === key.authenticate(purpose, line) ? parseKept(line) : undefined;
  if (!isJsonObject(value)) return undefined;
  const { seq, hash, latest, states } = value as unknown as Omit<ApprovalSummary, "states"> & {
    readonly states: readonly (readonly [string, RecordedApprovalState])[];
  };
  return { seq, hash, latest, states: new Map(states) };
}

const stateOf: Readonly<Record<string, ApprovalState>> = { approved: "approved", denied: "denied", expired: "expired" };

/** Updates the states of approvals by the next record. Returns the approval that the record is about, where it is about one. */
export function applyApproval(states: Map<string, RecordedApprovalState>, record: EvidenceRecord): string | undefined {
  if (record.kind === "decision") {
    const { approval } = record;
    if (approval === undefined) return undefined;
    if (approval.state === "consumed" || !states.has(approval.id)) {
      states.set(approval.id, { state: approval.state as ApprovalState, fingerprint: approval.fingerprint });
    }
    return approval.id;
  }
  if (record.kind !== "approval") return undefined;
  const { event, fingerprint: bound, id } = record.detail;
  const state = typeof event === "string" ? stateOf[event] : undefined;
  if (state === undefined || typeof id !== "string" || typeof bound !== "string") return undefined;
  // INVARIANT: a used approval stays used, whatever is recorded after it.
  if (states.get(id)?.state !== "consumed") states.set(id, { state, fingerprint: bound });
  return id;
}
