import { type Approval, type ExpiryReason, isFinal, stateAfter } from "../kernel/approval.ts";
import type { ApprovalBook } from "./book.ts";
import { readEntry } from "./entry.ts";
import { approvalKey } from "./key-space.ts";
import type { LiveApproval } from "./live-table.ts";

const sweepMs = 1_000;

/**
 * How approvals end without being used: by time, with their connection, by a change of what was reviewed, or in doubt.
 * An ending is in force at once and recorded then; one that cannot be recorded is tried again.
 */
export class Expiry {
  readonly #book: ApprovalBook;
  readonly #warn: (message: string, fields: object) => void;
  /** Ended in memory, and not yet on record. */
  readonly #owed = new Map<string, Approval>();
  /** Used in memory, and perhaps not on record: nothing was dispatched for them. */
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

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  /** Ends an approval in memory, in this turn. A denial that nobody needs to remember any more just goes. */
  begin({ approval }: LiveApproval, reason: ExpiryReason): Approval {
    const { tenant, id } = approval;
    this.#book.live.remove(tenant, id);
    const state = stateAfter(approval.state, "expire");
    return state === undefined ? approval : { ...approval, state, reason };
  }

  /** Puts an ending on record. */
  async finish(ended: Approval): Promise<void> {
    if (ended.state !== "expired") return;
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

  /** Takes an approval whose use may not have been recorded. It is never used again; what it is, the store will say. */
  doubt(used: Approval): void {
    this.#doubtful.set(used.id, used);
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
    const owed = [...this.#owed.values(), ...(await this.#settleDoubts())];
    this.#owed.clear();
    await this.#endAll(owed);
  }

  /** A sweep that fails is made good by the next. */
  #report(cause: unknown): void {
    this.#warn("approvals could not be swept", { cause: cause instanceof Error ? cause.message : String(cause) });
  }

  #owe(ended: Approval): void {
    if (ended.state === "expired") this.#owed.set(ended.id, ended);
  }

  /** What the store holds of each doubtful use is the truth once records can be written again. */
  async #settleDoubts(): Promise<readonly Approval[]> {
    const unused: Approval[] = [];
    for (const used of this.#doubtful.values()) {
      const text = await this.#book.parts.store.get(approvalKey(used.tenant, used.id));
      const stored = text === undefined ? undefined : readEntry(text, used.tenant, used.id);
      this.#doubtful.delete(used.id);
      if (stored !== undefined && !isFinal(stored.state)) {
        unused.push({ ...stored, state: "expired", reason: "use_not_recorded" });
      }
    }
    return unused;
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
