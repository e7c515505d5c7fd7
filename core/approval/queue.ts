import {
  type Approval,
  ApprovalGrant,
  type ApprovalReservation,
  type ApprovalStep,
  boundBy,
  type ExpiryReason,
  type FormerApproval,
  type QueueLimit,
  whyVoid,
} from "../action/approval.ts";
import { type ActionEnvelope, withoutHistory } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { DefinitionReader } from "../action/participant.ts";
import { shareOf } from "../action/place-share.ts";
import { type ApprovalStore, boundFingerprint } from "./approval-store.ts";
import { type ApprovalExpiry, expiryReasonOf, unassignedSeq } from "./expiry.ts";
import { type Fingerprints, isOverdue, type LiveApproval } from "./live-approvals.ts";

/**
 * The queue of actions that wait for a reviewer. Every call makes exactly one turn of the event loop over the approvals, so
 * that of any number of equal actions at once one uses an approval and the others find it used.
 *
 * The caller commits the decision with the `step` of a reservation, then calls `commit`, or `rollback` where it could not.
 */
export class ApprovalQueue {
  readonly #approvals: ApprovalStore;
  readonly #expiry: ApprovalExpiry;
  readonly #newId: () => string;

  /** `newId`: UUIDv7, so that ids sort by time. */
  constructor(approvals: ApprovalStore, expiry: ApprovalExpiry, newId: () => string) {
    this.#approvals = approvals;
    this.#expiry = expiry;
    this.#newId = newId;
  }

  /**
   * Finds or creates the approval of an action that policy holds for review, and takes one that was approved. Rejects with
   * EVIDENCE_UNAVAILABLE where the end of an earlier approval cannot be recorded, with DEFINITION_CHANGED where the upstream
   * no longer publishes the tool as it was judged, which ends an approval that was about to be used, and with the fault of
   * `readDefinition`.
   */
  async reserve(
    action: ActionEnvelope,
    evaluation: Evaluation,
    readDefinition?: DefinitionReader,
  ): Promise<ApprovalReservation> {
    const fingerprints = await this.#approvals.options.journal.fingerprints(action);
    if (readDefinition !== undefined) await this.#checkDefinition(action, fingerprints, readDefinition);
    // One turn from here to the first await.
    const known = this.#approvals.live.find(action.tenant, fingerprints);
    const reason = known === undefined ? undefined : this.#findExpiryReason(known, action, evaluation);
    if (known !== undefined && reason === undefined) return this.#reserveKnown(known, action);
    const ended = known === undefined || reason === undefined ? undefined : this.#expiry.expire(known, reason);
    if (ended !== undefined) this.#approvals.former.add(ended);
    const requested = this.#request(action, evaluation, fingerprints, this.#approvals.former.find(fingerprints.exact));
    if (ended === undefined) return requested;
    try {
      await this.#expiry.record(ended);
    } catch (error) {
      this.rollback(requested);
      throw error;
    }
    return requested;
  }

  /** Publishes the change of a reservation whose decision is durable. */
  commit(reservation: ApprovalReservation): void {
    const isNews = reservation.kind === "granted" || (reservation.kind === "held" && reservation.isNew);
    if (isNews) this.#approvals.announce(reservation.approval);
  }

  /**
   * Gives up a reservation whose decision may or may not be durable; nothing was dispatched. A used approval stays used until
   * the store shows otherwise.
   */
  rollback(reservation: ApprovalReservation): void {
    if (reservation.kind === "granted") this.#expiry.markUncertain(reservation.approval);
    if (reservation.kind !== "held" || !reservation.isNew) return;
    const { tenant, id } = reservation.approval;
    this.#approvals.live.remove(tenant, id);
    this.#expiry.markUncertain(reservation.approval);
  }

  /** An upstream may change a tool and announce nothing: what a reviewer approved is compared with what it publishes now. */
  async #checkDefinition(
    action: ActionEnvelope,
    fingerprints: Fingerprints,
    readDefinition: DefinitionReader,
  ): Promise<void> {
    const { live, former } = this.#approvals;
    if (live.find(action.tenant, fingerprints)?.approval.state !== "approved") return;
    if ((await readDefinition()) === action.tool_definition?.digest) return;
    // Another call may have used it or ended it meanwhile.
    const known = live.find(action.tenant, fingerprints);
    if (known?.approval.state === "approved") {
      const ended = this.#expiry.expire(known, "tool_changed");
      former.add(ended);
      await this.#expiry.record(ended);
    }
    throw new GatewayError("DEFINITION_CHANGED", `\`${action.tool}\``);
  }

  #findExpiryReason(known: LiveApproval, action: ActionEnvelope, evaluation: Evaluation): ExpiryReason | undefined {
    const { approval } = known;
    if (isOverdue(known, this.#approvals.options.gatewayTime())) return expiryReasonOf(approval);
    if (approval.state === "denied") return undefined;
    // The number of reviewers that policy requires can depend on the time.
    if (evaluation.approvals > approval.required) return "policy_changed";
    return whyVoid(approval.bound, boundBy(action, evaluation));
  }

  #reserveKnown(known: LiveApproval, action: ActionEnvelope): ApprovalReservation {
    const { approval } = known;
    if (approval.state === "approved") return this.#consume(approval, action);
    const step = stepOf(approval);
    return approval.state === "denied"
      ? { kind: "denied", approval, step }
      : { kind: "held", approval, step, isNew: false, former: undefined };
  }

  /** INVARIANT: removed from memory before anything is awaited, so that no other call finds it approved. */
  #consume(approved: Approval, action: ActionEnvelope): ApprovalReservation {
    const approval: Approval = { ...approved, state: "consumed", consumed_at: this.#approvals.now() };
    this.#approvals.live.remove(approval.tenant, approval.id);
    const step: ApprovalStep = {
      ...stepOf(approval),
      releases: approval.held_seq,
      operations: (seq) => this.#approvals.put({ ...approval, consumed_seq: seq }),
    };
    return { kind: "granted", approval, step, grant: ApprovalGrant.grantUse(approval.id, action) };
  }

  #request(
    action: ActionEnvelope,
    evaluation: Evaluation,
    fingerprints: Fingerprints,
    former: FormerApproval | undefined,
  ): ApprovalReservation {
    const { live, options } = this.#approvals;
    const holds = JSON.stringify({ action: withoutHistory(action), determining: evaluation.determining });
    const heldBytes = Buffer.byteLength(holds);
    const isShared = options.limits.keySharePercent < 100;
    const ownLimit = isShared ? this.#limitOf(action, heldBytes, "key") : undefined;
    const limit = ownLimit ?? this.#limitOf(action, heldBytes, "tenant");
    if (limit !== undefined) return { kind: "full", limit };
    const approval = this.#buildApproval(action, evaluation, fingerprints);
    const deadlineMs = options.gatewayTime() + options.limits.reviewMs;
    const requested: LiveApproval = { approval, deadlineMs, heldBytes };
    live.put(requested);
    const operations: ApprovalStep["operations"] = (seq) => {
      const placed = { ...approval, held_seq: seq };
      // A concurrent call may have expired it; then it stays expired.
      if (live.get(approval.tenant, approval.id) === requested) live.put({ approval: placed, deadlineMs, heldBytes });
      else this.#expiry.assignSeq(placed);
      return this.#approvals.put(placed);
    };
    const step = { ...stepOf(approval), holds, operations };
    return { kind: "held", approval, step, isNew: true, former };
  }

  /** Returns the limit that leaves no room for one more approval of the action's key, or of its tenant. */
  #limitOf(action: ActionEnvelope, heldBytes: number, scope: QueueLimit["scope"]): QueueLimit | undefined {
    const { live, options } = this.#approvals;
    const percent = scope === "key" ? options.limits.keySharePercent : 100;
    const maxApprovals = shareOf(options.limits.maxLive, percent);
    const maxBytes = shareOf(options.limits.maxHeldBytes, percent);
    const use = live.use(action.tenant, scope === "key" ? action.principal.id : undefined);
    const isCountUsedUp = use.approvals >= maxApprovals;
    if (!isCountUsedUp && use.bytes + heldBytes <= maxBytes) return undefined;
    const leftMs = use.firstDeadlineMs - options.gatewayTime();
    const retryS = heldBytes > maxBytes ? null : Math.max(1, Math.ceil(leftMs / 1_000));
    return isCountUsedUp
      ? { scope, unit: "approvals", max: maxApprovals, retryS }
      : { scope, unit: "bytes", max: maxBytes, retryS };
  }

  #buildApproval(action: ActionEnvelope, evaluation: Evaluation, { exact, task }: Fingerprints): Approval {
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
      held_seq: unassignedSeq,
      requested_at: this.#approvals.now(),
      expires_at: this.#approvals.after(this.#approvals.options.limits.reviewMs),
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
