import {
  type Approval,
  type ApprovalScope,
  type ApprovalTransition,
  type BreakGlass,
  type Endorsement,
  type HeldAction,
  isFinal,
  stateAfter,
} from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import type { ApprovalStore } from "./approval-store.ts";
import { breakGlassKey, breakGlassRange } from "./entry.ts";
import { type ApprovalExpiry, expiryReasonOf } from "./expiry.ts";
import { isOverdue, type LiveApproval } from "./live-approvals.ts";

export interface ReviewRule {
  /** True where the requester of an action may approve it. */
  readonly allowSelfReview: boolean;
  /** True where an administrator may approve without a quorum or a second person, and explain it in a post-mortem. */
  readonly allowBreakGlass: boolean;
}

export interface ApproveOptions {
  readonly scope: ApprovalScope;
  readonly comment?: string;
  /** The reason for break-glass: why the action cannot wait for its reviewers. */
  readonly breakGlass?: string;
}

/** The approval after a review, with its record and further writes. */
interface ReviewResult {
  readonly next: Approval;
  readonly detail: JsonObject;
  readonly operations?: readonly BatchOperation[];
}

/** Break-glass uses of a tenant without a post-mortem; one more is refused. */
const maxBreakGlass = 10;

/**
 * The review of held actions. Each review is durable, with its record, before it is in force. Of concurrent reviews one
 * succeeds, and the others are refused with the state of the approval.
 */
export class ApprovalReview {
  readonly #approvals: ApprovalStore;
  readonly #expiry: ApprovalExpiry;
  readonly #rule: ReviewRule;
  #breakGlassTurn: Promise<unknown> = Promise.resolve();

  constructor(approvals: ApprovalStore, expiry: ApprovalExpiry, rule: ReviewRule) {
    this.#approvals = approvals;
    this.#expiry = expiry;
    this.#rule = rule;
  }

  /**
   * Endorses a pending approval. With enough endorsements it is approved, for one use within the time to use.
   * Throws NOT_FOUND, APPROVAL_STATE (with its state), APPROVAL_SELF_REVIEW, APPROVAL_ENDORSED (the same reviewer again),
   * APPROVAL_INCOMPLETE (the action cannot be shown whole), BREAK_GLASS_FORBIDDEN.
   */
  async approve(id: string, reviewer: Principal, request: ApproveOptions): Promise<Approval> {
    const review = (): Promise<Approval> =>
      this.#review(id, reviewer, "approve", async (live) => {
        await this.#checkEndorsement(live.approval, reviewer, request);
        return endorse(this.#approvals, live.approval, reviewer, request);
      });
    if (request.breakGlass === undefined) return review();
    // One at a time, because each counts the uses before it.
    const turn = this.#breakGlassTurn.then(review);
    this.#breakGlassTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Denies a pending approval. Throws NOT_FOUND or APPROVAL_STATE. */
  async deny(id: string, reviewer: Principal, comment: string | undefined): Promise<Approval> {
    return this.#review(id, reviewer, "deny", async ({ approval }) => {
      const commented = comment === undefined ? {} : { comment };
      const review = { reviewed_at: this.#approvals.now(), reviewer: reviewer.id, ...commented };
      return { next: { ...approval, state: "denied", ...review }, detail: { event: "denied", ...review } };
    });
  }

  /** Reads the held action of an approval. Throws APPROVAL_INCOMPLETE where it is not kept whole. */
  async readHeld(approval: Approval): Promise<HeldAction> {
    const { journal } = this.#approvals.options;
    const text = await journal.held(approval.tenant, approval.held_seq);
    if (text === undefined) throw new GatewayError("APPROVAL_INCOMPLETE", "the held action was deleted");
    const held = JSON.parse(text) as HeldAction;
    const { exact } = await journal.fingerprints(held.action);
    if (exact === approval.fingerprint) return held;
    throw new GatewayError("APPROVAL_INCOMPLETE", "the held action is not the one that the approval is bound to");
  }

  /** Closes a break-glass use with a post-mortem. Throws NOT_FOUND or APPROVAL_STATE, also while it can still be used. */
  async closeBreakGlass(id: string, by: Principal, text: string): Promise<Approval> {
    return this.#exclusively(await this.#approvals.find(by.tenant, id), async () => {
      // Read again: a concurrent post-mortem may have been written.
      const approval = await this.#approvals.find(by.tenant, id);
      const use = openBreakGlassOf(approval);
      const postMortem = { by: by.id, text, at: this.#approvals.now() };
      const next = { ...approval, break_glass: { ...use, post_mortem: postMortem } };
      const closed: BatchOperation = { type: "del", key: breakGlassKey(approval.tenant, id) };
      await this.#approvals.record(next, { event: "post_mortem", ...postMortem }, [closed]);
      return next;
    });
  }

  async #review(
    id: string,
    reviewer: Principal,
    transition: ApprovalTransition,
    decide: (live: LiveApproval) => Promise<ReviewResult>,
  ): Promise<Approval> {
    // Defence in depth: the route checks the role too.
    if (!can(reviewer.role, "approval.review"))
      throw new GatewayError("ROLE_FORBIDDEN", "expected a role that may review");
    const found = await this.#approvals.find(reviewer.tenant, id);
    const live = this.#approvals.live.get(reviewer.tenant, id);
    if (live === undefined || stateAfter(live.approval.state, transition) === undefined) throw wrongState(found);
    return this.#exclusively(found, async () => {
      await this.#checkTime(live);
      const { next, detail, operations } = await decide(live);
      this.#checkUnchanged(live);
      await this.#record(live, next, detail, operations);
      this.#checkUnchanged(live);
      this.#approvals.advance(live, next);
      return next;
    });
  }

  /** After a failed write the review may be on disk or not; the expiry reads it from the store later. */
  async #record(
    { approval }: LiveApproval,
    next: Approval,
    detail: JsonObject,
    more?: ReviewResult["operations"],
  ): Promise<void> {
    try {
      await this.#approvals.record(next, detail, more);
    } catch (error) {
      this.#expiry.markUncertain(approval);
      throw error;
    }
  }

  /** Allows one review of an approval at a time, and refuses concurrent ones with APPROVAL_STATE. */
  async #exclusively<T>(approval: Approval, act: () => Promise<T>): Promise<T> {
    const { reviewed } = this.#expiry;
    if (reviewed.has(approval.id)) throw wrongState(approval, "another review is being recorded");
    reviewed.add(approval.id);
    try {
      return await act();
    } finally {
      reviewed.delete(approval.id);
    }
  }

  async #checkTime(live: LiveApproval): Promise<void> {
    if (!isOverdue(live, this.#approvals.options.gatewayTime())) return;
    const ended = this.#expiry.expire(live, expiryReasonOf(live.approval));
    await this.#expiry.record(ended);
    throw wrongState(ended);
  }

  /** Throws where the approval changed while something was awaited: a new tool definition, or a closed connection. */
  #checkUnchanged({ approval }: LiveApproval): void {
    const now = this.#approvals.live.get(approval.tenant, approval.id)?.approval;
    if (now !== approval) throw wrongState(now ?? { ...approval, state: "expired" });
  }

  async #checkEndorsement(approval: Approval, reviewer: Principal, { breakGlass }: ApproveOptions): Promise<void> {
    if (breakGlass !== undefined) await this.#checkBreakGlass(reviewer);
    else if (isSame(reviewer, approval.principal.id, approval.principal.key_id) && !this.#rule.allowSelfReview) {
      throw new GatewayError("APPROVAL_SELF_REVIEW", "expected another principal than the requester");
    }
    if (approval.endorsements.some((each) => isSame(reviewer, each.reviewer, each.key_id))) {
      throw new GatewayError("APPROVAL_ENDORSED", "expected another reviewer: this one has endorsed it already");
    }
    await this.readHeld(approval);
  }

  async #checkBreakGlass({ tenant, role }: Principal): Promise<void> {
    if (!this.#rule.allowBreakGlass || role !== "admin") {
      throw new GatewayError("BREAK_GLASS_FORBIDDEN", "expected `admin`, and `approvals.allow_break_glass: true`");
    }
    const open = await this.#approvals.options.store.keys({ ...breakGlassRange(tenant), limit: maxBreakGlass }).all();
    if (open.length < maxBreakGlass) return;
    throw new GatewayError(
      "BREAK_GLASS_FORBIDDEN",
      `expected fewer than ${maxBreakGlass} uses without post-mortem: write one with \`gateway break-glass close\``,
    );
  }
}

/** Compares the key id too: a rotated key is another principal, and still the same person. */
function isSame(reviewer: Principal, id: string, keyId: string): boolean {
  return reviewer.id === id || reviewer.keyId === keyId;
}

/** Returns the break-glass use without a post-mortem. Throws APPROVAL_STATE where there is none. */
function openBreakGlassOf(approval: Approval): BreakGlass {
  const { break_glass: use } = approval;
  if (use !== undefined && use.post_mortem === undefined && isFinal(approval.state)) return use;
  const found = use === undefined ? "no break-glass use" : use.post_mortem ? "accounted for" : approval.state;
  throw wrongState(approval, `expected a break-glass use that is over and open, got \`${found}\``);
}

function wrongState({ id, state }: Approval, detail?: string): GatewayError {
  return new GatewayError("APPROVAL_STATE", detail ?? `the approval is \`${state}\``, { data: { id, state } });
}

/** Adds an endorsement. Enough of them, or break-glass, approve. */
function endorse(
  approvals: ApprovalStore,
  approval: Approval,
  reviewer: Principal,
  { scope, comment, breakGlass }: ApproveOptions,
): ReviewResult {
  const at = approvals.now();
  const commented = comment === undefined ? {} : { comment };
  const endorsement: Endorsement = { reviewer: reviewer.id, key_id: reviewer.keyId, at, scope, ...commented };
  const endorsements = [...approval.endorsements, endorsement];
  const recorded = { reviewer: reviewer.id, scope, ...commented };
  if (endorsements.length < approval.required && breakGlass === undefined) {
    return { next: { ...approval, endorsements }, detail: { event: "endorsed", ...recorded } };
  }
  // The narrowest scope that any reviewer chose.
  const agreed: ApprovalScope = endorsements.every((each) => each.scope === "task") ? "task" : "exact";
  const next: Approval = {
    ...approval,
    state: "approved",
    scope: agreed,
    endorsements,
    reviewed_at: at,
    reviewer: reviewer.id,
    ...commented,
    expires_at: approvals.after(approvals.options.limits.useMs),
    ...(breakGlass === undefined ? {} : { break_glass: { by: reviewer.id, reason: breakGlass, at } }),
  };
  const detail: JsonObject = {
    ...recorded,
    event: "approved",
    scope: agreed,
    ...(agreed === "task" ? { action: taskOf(approval) } : {}),
    ...(breakGlass === undefined ? {} : { break_glass: { reason: breakGlass } }),
  };
  if (breakGlass === undefined) return { next, detail };
  return { next, detail, operations: [{ type: "put", key: breakGlassKey(approval.tenant, approval.id), value: "" }] };
}

function taskOf({ action }: Approval): JsonObject {
  const { capability, protocol, target, task, tool } = action;
  return { capability, protocol, target, task, tool };
}
