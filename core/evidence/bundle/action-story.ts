import { canonicalJson } from "../../action/canonical-json.ts";
import type { Json } from "../../action/json.ts";
import { ApprovalRules } from "../../approval/evidence-rule.ts";
import { KillRules } from "../../kill/evidence-rule.ts";
import { TicketRules } from "../../ticket/evidence-rule.ts";
import type { Reason } from "../record/reason.ts";
import { type ActionRecord, type EventRecord, noHash, type RecordedAction } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import { Breach, type BundledEntry } from "./bundle-line.ts";

/** Something found that does not end the verification: what is missing, or merely odd. */
export interface Remark {
  readonly reason: Reason;
  readonly seq: number;
}

interface DecidedAction {
  readonly record: ActionRecord;
  isSettled: boolean;
}

/**
 * What the records of one session may say after one another: links, writers, the session's own index, and the four
 * parts of each action. Throws Breach at the first record that contradicts an earlier one; remarks what is missing.
 */
export class ActionStory {
  /** In the order of the chain once `finish` was called. */
  readonly remarks: Remark[] = [];
  readonly #session: string;
  readonly #actions = new Map<string, DecidedAction>();
  /** A bundle holds what it is judged by: none of it is forgotten. */
  readonly #approvals = new ApprovalRules({ live: Number.POSITIVE_INFINITY, consumed: Number.POSITIVE_INFINITY });
  readonly #kills = new KillRules(Number.POSITIVE_INFINITY);
  readonly #tickets = new TicketRules(Number.POSITIVE_INFINITY);
  /** Whether records of the session are missing. */
  #hasGap = false;
  #before: BundledEntry | undefined;
  #sessionEnd: { readonly index: number; readonly hash: string } = { index: -1, hash: noHash };

  constructor(session: string) {
    this.#session = session;
  }

  /** Takes the next record of the bundle. */
  check(next: BundledEntry): void {
    this.#link(next);
    if (isAction(next.record)) {
      this.#continueSession(next.record, next.hash);
      if (next.record.kind === "decision") this.#decide(next.record);
      else this.#settle(next.record);
      if (!this.#tickets.check(next.record, this.#hasGap)) throw breach("ticket_misused", next.record.seq);
    } else this.#happen(next.record);
    this.#before = next;
  }

  /** After the last record: what was dispatched and has no outcome, and break-glass without a post-mortem. */
  finish(): void {
    for (const { record, isSettled } of this.#actions.values()) {
      if (record.effect === "dispatched" && !isSettled) this.#remark("open_outcome", record.seq);
    }
    for (const seq of this.#approvals.owed) this.#remark("post_mortem_missing", seq);
    this.remarks.sort((a, b) => a.seq - b.seq);
  }

  #link({ record }: BundledEntry): void {
    const before = this.#before;
    const isNext = record.seq === (before?.record.seq ?? -1) + 1;
    if (isNext && record.prev_hash !== (before?.hash ?? noHash)) throw breach("bad_prev_hash", record.seq);
    if (before === undefined) return;
    if (record.writer.epoch < before.record.writer.epoch) throw breach("stale_epoch", record.seq);
    if (record.time < before.record.time) this.#remark("time_reversed", record.seq);
  }

  #continueSession({ seq, session }: ActionRecord, hash: string): void {
    const { index, hash: endHash } = this.#sessionEnd;
    if (session.id !== this.#session) throw breach("foreign_session", seq);
    if (session.index > index + 1) this.#missing(seq);
    else if (session.index <= index || session.prev_hash !== endHash) throw breach("bad_session_link", seq);
    this.#sessionEnd = { index: session.index, hash };
  }

  #decide(record: ActionRecord): void {
    const { action, seq } = record;
    if (this.#actions.has(action.id)) throw breach("second_decision", seq);
    if (record.effect === "dispatched") {
      if (this.#kills.covers(record)) throw breach("allow_after_kill", seq);
      const broken = this.#approvals.check(record);
      if (broken !== undefined) throw breach(broken, seq);
    }
    this.#actions.set(action.id, { record, isSettled: false });
  }

  #settle(record: ActionRecord): void {
    const { action, seq } = record;
    const told = this.#actions.get(action.id);
    if (told === undefined) throw breach("outcome_without_decision", seq);
    if (told.record.effect !== "dispatched") throw breach("outcome_after_block", seq);
    if (told.isSettled) throw breach("second_outcome", seq);
    if (withoutOutput(told.record.action) !== withoutOutput(action)) throw breach("outcome_mismatch", seq);
    told.isSettled = true;
  }

  #happen(record: EventRecord): void {
    if (record.kind === "approval") this.#approvals.note(record);
    if (record.kind === "session") this.#kills.note(record);
    if (record.kind === "ticket") this.#tickets.note(record);
  }

  #missing(seq: number): void {
    this.#hasGap = true;
    this.#remark("session_gap", seq);
  }

  #remark(reason: Reason, seq: number): void {
    this.remarks.push({ reason, seq });
  }
}

function breach(reason: Reason, seq: number): Breach {
  return new Breach(reason, { file: "records", seq });
}

/** An outcome repeats its decision's action to the letter, and adds what came of it. */
function withoutOutput(action: RecordedAction): string {
  return canonicalJson({ ...action, output_digest: null } as unknown as Json);
}
