import { type Approval, type ExpiryReason, stateAfter } from "../action/approval.ts";
import type { ApprovalStore } from "./approval-store.ts";
import { approvalKey } from "./entry.ts";
import type { LiveApproval } from "./live-approvals.ts";

const sweepMs = 1_000;

/** `held_seq` until the decision that holds the action is recorded: record 0 is the genesis record. */
export const unassignedSeq = 0;

/**
 * Expires approvals: by time, with their connection, by a change of what was reviewed, or where their state is uncertain.
 * An expiry is in force at once and recorded afterwards; one that cannot be recorded is retried.
 */
export class ApprovalExpiry {
  readonly #approvals: ApprovalStore;
  readonly #warn: (message: string, fields: object) => void;
  /** Expired in memory, and not recorded yet. */
  readonly #unrecorded = new Map<string, Approval>();
  /** Expired before their decision was recorded: their expiry is recorded after it. */
  readonly #early = new Map<string, Approval>();
  /** Their last write may be on disk or not. Nothing was dispatched for them. */
  readonly #uncertain = new Map<string, Approval>();
  /** A review of these is being recorded. */
  readonly reviewed: Set<string> = new Set();
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(approvals: ApprovalStore, warn: (message: string, fields: object) => void) {
    this.#approvals = approvals;
    this.#warn = warn;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#sweeping = this.#sweeping.then(() => this.sweep()).catch((cause: unknown) => this.#report(cause));
    }, sweepMs).unref();
  }

  /** Stops the timer, after a last sweep as far as records can be written. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
    await this.sweep().catch((cause: unknown) => this.#report(cause));
  }

  /** Expires an approval in memory, in this turn. A denial is only dropped from memory. */
  expire({ approval }: LiveApproval, reason: ExpiryReason): Approval {
    const { tenant, id } = approval;
    this.#approvals.live.remove(tenant, id);
    const state = stateAfter(approval.state, "expire");
    if (state === undefined) return approval;
    const ended: Approval = { ...approval, state, reason };
    if (ended.held_seq === unassignedSeq) this.#early.set(id, ended);
    return ended;
  }

  /** Called when the decision of an approval that `expire` ended has its sequence number: records the expiry later. */
  assignSeq(placed: Approval): void {
    const ended = this.#early.get(placed.id);
    this.#early.delete(placed.id);
    if (ended !== undefined) this.#recordLater({ ...ended, held_seq: placed.held_seq });
  }

  /** Records an expiry. */
  async record(ended: Approval): Promise<void> {
    if (ended.state !== "expired" || ended.held_seq === unassignedSeq) return;
    try {
      await this.#approvals.record(ended, { event: "expired", reason: ended.reason ?? "" });
    } catch (error) {
      this.#recordLater(ended);
      throw error;
    }
    this.#approvals.announce(ended);
  }

  /** Expires every approval of a session whose connection is closed. */
  async endSession(tenant: string, session: string): Promise<void> {
    const live = this.#approvals.live.of(tenant).filter(({ approval }) => approval.session.id === session);
    await this.#recordAll(live.map((each) => this.expire(each, "connection_closed")));
  }

  /** Expires every approval of a tool of an upstream whose definition is withheld: another one was reviewed. */
  async endTool(tenant: string, target: string, tool: string): Promise<void> {
    const live = this.#approvals.live
      .of(tenant)
      .filter(
        ({ approval: { action } }) => action.protocol === "mcp" && action.target === target && action.tool === tool,
      );
    await this.#recordAll(live.map((each) => this.expire(each, "tool_changed")));
  }

  /** Notes an approval whose last write may have happened or not: the next sweep reads its state from the store. */
  markUncertain(approval: Approval): void {
    this.#early.delete(approval.id);
    this.#uncertain.set(approval.id, approval);
  }

  /** Expires overdue approvals, and records and reconciles the others, as far as records can be written. */
  async sweep(): Promise<void> {
    const { gatewayTime, journal } = this.#approvals.options;
    const late = this.#approvals.live
      .findOverdue(gatewayTime())
      .filter(({ approval }) => !this.reviewed.has(approval.id))
      .map((each) => this.expire(each, expiryReasonOf(each.approval)));
    for (const ended of late) this.#recordLater(ended);
    if (!journal.writable) return;
    for (const uncertain of [...this.#uncertain.values()]) await this.#reconcile(uncertain);
    const unrecorded = [...this.#unrecorded.values()];
    this.#unrecorded.clear();
    await this.#recordAll(unrecorded);
  }

  /** A failed sweep is repeated by the next. */
  #report(cause: unknown): void {
    this.#warn("approval_sweep_failed", { cause: cause instanceof Error ? cause.message : String(cause) });
  }

  #recordLater(ended: Approval): void {
    if (ended.state === "expired" && ended.held_seq !== unassignedSeq) this.#unrecorded.set(ended.id, ended);
  }

  /** Reads the state of an uncertain approval from the store, which is authoritative once records can be written again. */
  async #reconcile({ tenant, id }: Approval): Promise<void> {
    const text = await this.#approvals.options.store.get(approvalKey(tenant, id));
    this.#uncertain.delete(id);
    const stored = text === undefined ? undefined : this.#approvals.read(tenant, id, text);
    if (stored === undefined) return;
    const live = this.#approvals.live.get(tenant, id);
    if (live !== undefined) this.#adoptReview(live, stored);
    else if (stored.state === "approved")
      this.#recordLater({ ...stored, state: "expired", reason: "use_not_recorded" });
    else if (stored.state === "pending") {
      this.#recordLater({ ...stored, state: "expired", reason: "request_not_recorded" });
    }
  }

  /** Puts a review in force that turned out to be on disk. */
  #adoptReview(live: LiveApproval, stored: Approval): void {
    const { id, state } = live.approval;
    if (state === "pending" && !this.reviewed.has(id)) this.#approvals.advance(live, stored);
  }

  async #recordAll(ended: readonly Approval[]): Promise<void> {
    const results = await Promise.allSettled(ended.map((each) => this.record(each)));
    const failed = results.filter(({ status }) => status === "rejected").length;
    if (failed > 0) this.#warn("approval_expiry_record_failed", { count: failed });
  }
}

/** The reason for an expiry by time. */
export function expiryReasonOf({ state }: Approval): ExpiryReason {
  return state === "approved" ? "not_used_in_time" : "not_reviewed_in_time";
}
