import { type Approval, type ExpiryReason, stateAfter } from "../action/approval.ts";
import type { ApprovalBook } from "./book.ts";
import { approvalKey } from "./entry.ts";
import type { LiveApproval } from "./live-table.ts";

const sweepMs = 1_000;

/** `held_seq` until the decision that holds the action has its place: record 0 is the genesis record. */
export const unplaced = 0;

/**
 * How approvals end without being used: by time, with their connection, by a change of what was reviewed, or in doubt.
 * An ending is in force at once and recorded then; one that cannot be recorded is tried again.
 */
export class Expiry {
  readonly #book: ApprovalBook;
  readonly #warn: (message: string, fields: object) => void;
  /** Ended in memory, and not yet on record. */
  readonly #owed = new Map<string, Approval>();
  /** Ended before their decision has its place in the chain: their end is recorded behind it. */
  readonly #early = new Map<string, Approval>();
  /** What was written of them may be on disk or not. Nothing was dispatched for them. */
  readonly #doubtful = new Map<string, Approval>();
  /** A reviewer's answer about these is being recorded. */
  readonly reviewed: Set<string> = new Set();
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(book: ApprovalBook, warn: (message: string, fields: object) => void) {
    this.#book = book;
    this.#warn = warn;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping.then(() => this.sweep()).catch((cause: unknown) => this.#report(cause));
    }, sweepMs).unref();
  }

  /** Ends the watch. What is owed or in doubt is settled first, as far as records can be written. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
    await this.sweep().catch((cause: unknown) => this.#report(cause));
  }

  /** Ends an approval in memory, in this turn. A denial that nobody needs to remember any more just goes. */
  begin({ approval }: LiveApproval, reason: ExpiryReason): Approval {
    const { tenant, id } = approval;
    this.#book.live.remove(tenant, id);
    const state = stateAfter(approval.state, "expire");
    if (state === undefined) return approval;
    const ended: Approval = { ...approval, state, reason };
    if (ended.held_seq === unplaced) this.#early.set(id, ended);
    return ended;
  }

  /** The decision that holds the action of an approval that `begin` ended has its place now. */
  place(placed: Approval): void {
    const ended = this.#early.get(placed.id);
    this.#early.delete(placed.id);
    if (ended !== undefined) this.#owe({ ...ended, held_seq: placed.held_seq });
  }

  /** Puts an ending on record. */
  async finish(ended: Approval): Promise<void> {
    if (ended.state !== "expired" || ended.held_seq === unplaced) return;
    try {
      await this.#book.record(ended, { event: "expired", reason: ended.reason ?? "" });
    } catch (error) {
      this.#owe(ended);
      throw error;
    }
    this.#book.announce(ended);
  }

  /** Ends every approval of a session whose connection is gone. */
  async endSession(tenant: string, session: string): Promise<void> {
    const live = this.#book.live.of(tenant).filter(({ approval }) => approval.session.id === session);
    await this.#endAll(live.map((each) => this.begin(each, "connection_closed")));
  }

  /** Takes an approval of which nobody knows whether its last step was recorded. What it is, the store will say. */
  doubt(approval: Approval): void {
    this.#early.delete(approval.id);
    this.#doubtful.set(approval.id, approval);
  }

  /** Ends what is past its time, and settles what is owed or doubtful, as far as records can be written. */
  async sweep(): Promise<void> {
    const { clock, monotonicMs, journal } = this.#book.parts;
    const now = clock();
    const late = this.#book.live
      .pastDue(monotonicMs(), now)
      .filter(({ approval }) => !this.reviewed.has(approval.id))
      .map((each) => this.begin(each, endingOf(each.approval)));
    for (const ended of late) this.#owe(ended);
    if (!journal.writable) return;
    for (const doubtful of [...this.#doubtful.values()]) await this.#settle(doubtful);
    const owed = [...this.#owed.values()];
    this.#owed.clear();
    await this.#endAll(owed);
  }

  /** A sweep that fails is made good by the next. */
  #report(cause: unknown): void {
    this.#warn("approvals could not be swept", { cause: cause instanceof Error ? cause.message : String(cause) });
  }

  #owe(ended: Approval): void {
    if (ended.state === "expired" && ended.held_seq !== unplaced) this.#owed.set(ended.id, ended);
  }

  /** What the store holds is the truth once records can be written again. */
  async #settle({ tenant, id }: Approval): Promise<void> {
    const text = await this.#book.parts.store.get(approvalKey(tenant, id));
    this.#doubtful.delete(id);
    const stored = text === undefined ? undefined : this.#book.read(tenant, id, text);
    if (stored === undefined) return;
    const live = this.#book.live.get(tenant, id);
    if (live !== undefined) this.#follow(live, stored);
    else if (stored.state === "approved") this.#owe({ ...stored, state: "expired", reason: "use_not_recorded" });
    else if (stored.state === "pending") this.#owe({ ...stored, state: "expired", reason: "request_not_recorded" });
  }

  /** A reviewer's answer was on disk after all. */
  #follow(live: LiveApproval, stored: Approval): void {
    const { id, state } = live.approval;
    if (state === "pending" && !this.reviewed.has(id)) this.#book.advance(live, stored);
  }

  async #endAll(ended: readonly Approval[]): Promise<void> {
    const results = await Promise.allSettled(ended.map((each) => this.finish(each)));
    const failed = results.filter(({ status }) => status === "rejected").length;
    if (failed > 0) this.#warn("ended approvals wait for their record", { count: failed });
  }
}

/** Why time ended it. */
export function endingOf({ state }: Approval): ExpiryReason {
  return state === "approved" ? "not_used_in_time" : "not_reviewed_in_time";
}
