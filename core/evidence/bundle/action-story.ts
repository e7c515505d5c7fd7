import { canonicalJson } from "../../action/canonical-json.ts";
import type { Json } from "../../action/json.ts";
import type { Reason } from "../record/reason.ts";
import { type ActionRecord, noHash, type RecordedAction } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import { type RecordRules, RuleSet } from "../verify/record-rule.ts";
import { Breach, type BundledEntry } from "./bundle-line.ts";

/** A finding that does not end the verification: something is missing, or merely odd. */
export interface Remark {
  readonly reason: Reason;
  readonly seq: number;
}

interface DecidedAction {
  readonly record: ActionRecord;
  isSettled: boolean;
}

/**
 * Checks what the records of one session may say after one another: links, writers, the session's own index, the
 * decision and outcome of each action, and the rules of the features.
 */
export class ActionStory {
  /** In the order of the chain once `finish` was called. */
  readonly remarks: Remark[] = [];
  readonly #session: string;
  readonly #actions = new Map<string, DecidedAction>();
  readonly #rules: RuleSet;
  /** True once records of the session are missing. */
  #hasGap = false;
  #before: BundledEntry | undefined;
  #sessionEnd: { readonly index: number; readonly hash: string } = { index: -1, hash: noHash };

  constructor(session: string, rules: RecordRules) {
    this.#session = session;
    // A bundle holds everything it is checked by: nothing of it is dropped.
    this.#rules = new RuleSet(rules, Number.POSITIVE_INFINITY);
  }

  /** Accepts the next record of the bundle. Throws Breach where it contradicts an earlier one. */
  check(next: BundledEntry): void {
    const { record, hash } = next;
    this.#checkLink(record);
    if (isAction(record)) {
      this.#checkSession(record, hash);
      if (record.kind === "decision") this.#checkDecision(record);
      else this.#checkOutcome(record);
      const broken = this.#rules.checkAction(record, this.#hasGap);
      if (broken !== undefined) throw breach(broken.reason, record.seq);
    } else this.#rules.readEvent(record);
    this.#before = next;
  }

  /** After the last record: remarks dispatched actions without an outcome, and break-glass without a post-mortem. */
  finish(): void {
    for (const { record, isSettled } of this.#actions.values()) {
      if (record.effect === "dispatched" && !isSettled) this.#remark("open_outcome", record.seq);
    }
    for (const seq of this.#rules.missingPostMortems()) this.#remark("post_mortem_missing", seq);
    this.remarks.sort((a, b) => a.seq - b.seq);
  }

  #checkLink(record: BundledEntry["record"]): void {
    const before = this.#before;
    const isNext = record.seq === (before?.record.seq ?? -1) + 1;
    if (isNext && record.prev_hash !== (before?.hash ?? noHash)) throw breach("bad_prev_hash", record.seq);
    if (before === undefined) return;
    if (record.writer.epoch < before.record.writer.epoch) throw breach("stale_epoch", record.seq);
    if (record.time < before.record.time) this.#remark("time_reversed", record.seq);
  }

  #checkSession({ seq, session }: ActionRecord, hash: string): void {
    const { index, hash: endHash } = this.#sessionEnd;
    if (session.id !== this.#session) throw breach("foreign_session", seq);
    if (session.index > index + 1) {
      this.#hasGap = true;
      this.#remark("session_gap", seq);
    } else if (session.index <= index || session.prev_hash !== endHash) throw breach("bad_session_link", seq);
    this.#sessionEnd = { index: session.index, hash };
  }

  #checkDecision(record: ActionRecord): void {
    const { action, effect, seq } = record;
    if (this.#actions.has(action.id)) throw breach("second_decision", seq);
    const broken = effect === "dispatched" ? this.#rules.checkDispatch(record) : undefined;
    if (broken !== undefined) throw breach(broken.reason, seq);
    this.#actions.set(action.id, { record, isSettled: false });
  }

  #checkOutcome(record: ActionRecord): void {
    const { action, seq } = record;
    const decided = this.#actions.get(action.id);
    if (decided === undefined) throw breach("outcome_without_decision", seq);
    if (decided.record.effect !== "dispatched") throw breach("outcome_after_block", seq);
    if (decided.isSettled) throw breach("second_outcome", seq);
    if (withoutOutput(decided.record.action) !== withoutOutput(action)) throw breach("outcome_mismatch", seq);
    decided.isSettled = true;
  }

  #remark(reason: Reason, seq: number): void {
    this.remarks.push({ reason, seq });
  }
}

function breach(reason: Reason, seq: number): Breach {
  return new Breach(reason, { file: "records", seq });
}

/** An outcome repeats its decision's action exactly, and adds the digest of the output. */
function withoutOutput(action: RecordedAction): string {
  return canonicalJson({ ...action, output_digest: null } as unknown as Json);
}
