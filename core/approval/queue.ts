import {
  type Approval,
  ApprovalGrant,
  type ApprovalReservation,
  type ApprovalStep,
  boundBy,
  type ExpiryReason,
  type FormerApproval,
  whyVoid,
} from "../action/approval.ts";
import { type ActionEnvelope, withoutHistory } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import { type ApprovalBook, boundFingerprint } from "./book.ts";
import { type Expiry, endingOf, unplaced } from "./expiry.ts";
import { type Fingerprints, isLate, type LiveApproval } from "./live-table.ts";

/**
 * The queue of actions that wait for a reviewer. Every call makes exactly one turn of the event loop over the approvals, so
 * that of any number of equal actions at once one uses an approval and the others find it used.
 *
 * The caller commits the decision with the `step` of a reservation, then calls `commit`, or `rollback` where it could not.
 */
export class ApprovalQueue {
  readonly #book: ApprovalBook;
  readonly #expiry: Expiry;
  readonly #newId: () => string;

  /** `newId`: UUIDv7, so that ids sort by time. */
  constructor(book: ApprovalBook, expiry: Expiry, newId: () => string) {
    this.#book = book;
    this.#expiry = expiry;
    this.#newId = newId;
  }

  /**
   * Finds or creates the approval of an action that policy holds for review, and takes one that was approved. Rejects with
   * EVIDENCE_UNAVAILABLE where the end of an earlier approval cannot be recorded.
   */
  async reserve(action: ActionEnvelope, evaluation: Evaluation): Promise<ApprovalReservation> {
    const fingerprints = await this.#book.parts.journal.fingerprints(action);
    // One turn from here to the first await.
    const known = this.#book.live.find(action.tenant, fingerprints);
    const over = known === undefined ? undefined : this.#whyOver(known, action, evaluation);
    if (known !== undefined && over === undefined) return this.#answer(known, action);
    const ended = known === undefined || over === undefined ? undefined : this.#expiry.begin(known, over);
    if (ended !== undefined) this.#book.former.add(ended);
    const asked = this.#ask(action, evaluation, fingerprints, this.#book.former.find(fingerprints.exact));
    if (ended === undefined) return asked;
    try {
      await this.#expiry.finish(ended);
    } catch (error) {
      this.rollback(asked);
      throw error;
    }
    return asked;
  }

  /** Publishes the change of a reservation whose decision is durable. */
  commit(reservation: ApprovalReservation): void {
    const isNews = reservation.kind === "granted" || (reservation.kind === "held" && reservation.isNew);
    if (isNews) this.#book.announce(reservation.approval);
  }

  /**
   * Gives up a reservation whose decision may or may not be durable; nothing was dispatched. A used approval stays used until
   * the store shows otherwise.
   */
  rollback(reservation: ApprovalReservation): void {
    if (reservation.kind === "granted") this.#expiry.doubt(reservation.approval);
    if (reservation.kind !== "held" || !reservation.isNew) return;
    const { tenant, id } = reservation.approval;
    this.#book.live.remove(tenant, id);
    this.#expiry.doubt(reservation.approval);
  }

  #whyOver(known: LiveApproval, action: ActionEnvelope, evaluation: Evaluation): ExpiryReason | undefined {
    const { approval } = known;
    const { clock, monotonicMs } = this.#book.parts;
    if (isLate(known, monotonicMs(), clock())) return endingOf(approval);
    if (approval.state === "denied") return undefined;
    // What policy asks for can grow with the hour: fewer reviewers than it wants now are too few.
    if (evaluation.approvals > approval.required) return "policy_changed";
    return whyVoid(approval.bound, boundBy(action, evaluation));
  }

  #answer(known: LiveApproval, action: ActionEnvelope): ApprovalReservation {
    const { approval } = known;
    if (approval.state === "approved") return this.#use(approval, action);
    const step = stepOf(approval);
    return approval.state === "denied"
      ? { kind: "denied", approval, step }
      : { kind: "held", approval, step, isNew: false, former: undefined };
  }

  /** INVARIANT: taken from memory before anything is awaited; nobody finds it approved again. */
  #use(approved: Approval, action: ActionEnvelope): ApprovalReservation {
    const approval: Approval = { ...approved, state: "consumed", consumed_at: this.#book.now() };
    this.#book.live.remove(approval.tenant, approval.id);
    const step: ApprovalStep = {
      ...stepOf(approval),
      releases: approval.held_seq,
      operations: (seq) => this.#book.put({ ...approval, consumed_seq: seq }),
    };
    return { kind: "granted", approval, step, grant: ApprovalGrant.grantUse(approval.id, action) };
  }

  #ask(
    action: ActionEnvelope,
    evaluation: Evaluation,
    fingerprints: Fingerprints,
    former: FormerApproval | undefined,
  ): ApprovalReservation {
    const { live, parts } = this.#book;
    const { limits } = parts;
    const holds = JSON.stringify({ action: withoutHistory(action), determining: evaluation.determining });
    const heldBytes = Buffer.byteLength(holds);
    const isFull =
      live.count(action.tenant, "pending", "approved") >= limits.maxLive ||
      live.heldBytes(action.tenant) + heldBytes > limits.maxHeldBytes;
    if (isFull) return { kind: "full" };
    const approval = this.#make(action, evaluation, fingerprints);
    const deadlineMs = parts.monotonicMs() + limits.reviewMs;
    const asked: LiveApproval = { approval, deadlineMs, heldBytes };
    live.put(asked);
    const operations: ApprovalStep["operations"] = (seq) => {
      const placed = { ...approval, held_seq: seq };
      // Another call may have ended it since: then it is not to come back.
      if (live.get(approval.tenant, approval.id) === asked) live.put({ approval: placed, deadlineMs, heldBytes });
      else this.#expiry.place(placed);
      return this.#book.put(placed);
    };
    const step = { ...stepOf(approval), holds, operations };
    return { kind: "held", approval, step, isNew: true, former };
  }

  #make(action: ActionEnvelope, evaluation: Evaluation, { exact, task }: Fingerprints): Approval {
    const { principal, session, capability, protocol, target, tool } = action;
    const tainted = (action.session_state?.taints ?? []).map(({ name }) => name);
    return {
      id: `apr_${this.#newId().replaceAll("-", "")}`,
      tenant: action.tenant,
      state: "pending",
      scope: "exact",
      fingerprint: exact,
      task_fingerprint: task,
      principal: { id: principal.id, key_id: principal.keyId, role: principal.role },
      session: { id: session.id, transport: session.transport },
      action: { id: action.id, capability, protocol, target, task: action.task, tool },
      evaluation: {
        id: evaluation.id,
        by_default: evaluation.byDefault,
        risk: evaluation.risk,
        rules: evaluation.determining.map(({ rule }) => rule),
      },
      ...(tainted.length === 0 ? {} : { tainted }),
      bound: boundBy(action, evaluation),
      required: evaluation.approvals,
      endorsements: [],
      held_seq: unplaced,
      requested_at: this.#book.now(),
      expires_at: this.#book.after(this.#book.parts.limits.reviewMs),
    };
  }
}

/** The step of a decision that names an approval and changes nothing about it. */
function stepOf(approval: Approval): ApprovalStep {
  const { id, reviewer, state } = approval;
  return {
    approval: { fingerprint: boundFingerprint(approval), id, reviewer: reviewer ?? null, state },
    holds: null,
    releases: null,
    operations: () => [],
  };
}
