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
import type { ApprovalBook } from "./book.ts";
import { breakGlassKey, breakGlassRange } from "./entry.ts";
import { type Expiry, endingOf } from "./expiry.ts";
import { isLate, type LiveApproval } from "./live-table.ts";

export interface ReviewRule {
  /** Whether whoever asked for an action may approve it. */
  readonly allowSelfReview: boolean;
  /** Whether an administrator may approve against quorum and self-review, and account for it later. */
  readonly allowBreakGlass: boolean;
}

/** Break-glass uses of a tenant that nobody has accounted for yet; one more is refused. */
const maxBreakGlass = 10;

/**
 * What people say of held actions. Each answer is durable, with the record that tells of it, before it is in force; of
 * several at once one counts and the others hear in which state they found the approval.
 */
export class ApprovalReview {
  readonly #book: ApprovalBook;
  readonly #expiry: Expiry;
  readonly #rule: ReviewRule;
  #emergency: Promise<unknown> = Promise.resolve();

  constructor(book: ApprovalBook, expiry: Expiry, rule: ReviewRule) {
    this.#book = book;
    this.#expiry = expiry;
    this.#rule = rule;
  }

  /**
   * Says yes. With enough of them the approval is approved, for one use within the time to use.
   * Throws NOT_FOUND, APPROVAL_STATE (with the state it has), APPROVAL_SELF_REVIEW, APPROVAL_ENDORSED (the same reviewer
   * again), APPROVAL_INCOMPLETE (the action cannot be shown in full), BREAK_GLASS_FORBIDDEN.
   */
  async approve(id: string, reviewer: Principal, yes: Yes): Promise<Approval> {
    const answer = (): Promise<Approval> =>
      this.#answer(id, reviewer, "approve", async (live) => {
        await this.#checkYes(live.approval, reviewer, yes);
        return endorse(this.#book, live.approval, reviewer, yes);
      });
    if (yes.breakGlass === undefined) return answer();
    // One after the other: each counts those before it.
    const turn = this.#emergency.then(answer);
    this.#emergency = turn.catch(() => undefined);
    return turn;
  }

  /** Says no, for good. Throws NOT_FOUND or APPROVAL_STATE. */
  async deny(id: string, reviewer: Principal, comment: string | undefined): Promise<Approval> {
    return this.#answer(id, reviewer, "deny", async ({ approval }) => {
      const said = comment === undefined ? {} : { comment };
      const review = { reviewed_at: this.#book.now(), reviewer: reviewer.id, ...said };
      return { next: { ...approval, state: "denied", ...review }, detail: { event: "denied", ...review } };
    });
  }

  /** What a reviewer must see. Throws NOT_FOUND, and APPROVAL_INCOMPLETE where it is not kept whole. */
  async held(approval: Approval): Promise<HeldAction> {
    const { journal } = this.#book.parts;
    const text = await journal.held(approval.tenant, approval.held_seq);
    if (text === undefined) throw new GatewayError("APPROVAL_INCOMPLETE", "the held action is kept no more");
    const held = JSON.parse(text) as HeldAction;
    const { exact } = await journal.fingerprints(held.action);
    if (exact === approval.fingerprint) return held;
    throw new GatewayError("APPROVAL_INCOMPLETE", "the held action is not the one that the approval is bound to");
  }

  /** Closes a break-glass use with what happened. Throws NOT_FOUND or APPROVAL_STATE, also while it can still be used. */
  async account(id: string, by: Principal, text: string): Promise<Approval> {
    return this.#exclusively(await this.#book.find(by.tenant, id), async () => {
      // Read again: another post-mortem may have been written since.
      const approval = await this.#book.find(by.tenant, id);
      const use = openUse(approval);
      const postMortem = { by: by.id, text, at: this.#book.now() };
      const next = { ...approval, break_glass: { ...use, post_mortem: postMortem } };
      const closed: BatchOperation = { type: "del", key: breakGlassKey(approval.tenant, id) };
      await this.#book.record(next, { event: "post_mortem", ...postMortem }, [closed]);
      return next;
    });
  }

  async #answer(
    id: string,
    reviewer: Principal,
    transition: ApprovalTransition,
    decide: (live: LiveApproval) => Promise<Answer>,
  ): Promise<Approval> {
    // The wall behind that of the route.
    if (!can(reviewer.role, "approval.review")) throw new GatewayError("ROLE_FORBIDDEN", "expected who may review");
    const found = await this.#book.find(reviewer.tenant, id);
    const live = this.#book.live.get(reviewer.tenant, id);
    if (live === undefined || stateAfter(live.approval.state, transition) === undefined) throw wrongState(found);
    return this.#exclusively(found, async () => {
      await this.#checkTime(live);
      const { next, detail, operations } = await decide(live);
      this.#checkStill(live);
      await this.#record(live, next, detail, operations);
      this.#checkStill(live);
      this.#book.advance(live, next);
      return next;
    });
  }

  /** Where nobody knows whether the answer is on disk, the store will say. */
  async #record(
    { approval }: LiveApproval,
    next: Approval,
    detail: JsonObject,
    more?: Answer["operations"],
  ): Promise<void> {
    try {
      await this.#book.record(next, detail, more);
    } catch (error) {
      this.#expiry.doubt(approval);
      throw error;
    }
  }

  /** One answer at a time: whoever comes meanwhile is told to look again. */
  async #exclusively<T>(approval: Approval, act: () => Promise<T>): Promise<T> {
    const { reviewed } = this.#expiry;
    if (reviewed.has(approval.id)) throw wrongState(approval, "another answer is being recorded");
    reviewed.add(approval.id);
    try {
      return await act();
    } finally {
      reviewed.delete(approval.id);
    }
  }

  async #checkTime(live: LiveApproval): Promise<void> {
    const { clock, monotonicMs } = this.#book.parts;
    if (!isLate(live, monotonicMs(), clock())) return;
    const ended = this.#expiry.begin(live, endingOf(live.approval));
    await this.#expiry.finish(ended);
    throw wrongState(ended);
  }

  /** While something was awaited, the action may have been asked for under another definition, or its connection gone. */
  #checkStill({ approval }: LiveApproval): void {
    const now = this.#book.live.get(approval.tenant, approval.id)?.approval;
    if (now !== approval) throw wrongState(now ?? { ...approval, state: "expired" });
  }

  async #checkYes(approval: Approval, reviewer: Principal, { breakGlass }: Yes): Promise<void> {
    if (breakGlass !== undefined) await this.#checkBreakGlass(reviewer);
    else if (isSame(reviewer, approval.principal.id, approval.principal.key_id) && !this.#rule.allowSelfReview) {
      throw new GatewayError("APPROVAL_SELF_REVIEW", "expected another principal than the one who asked");
    }
    if (approval.endorsements.some((each) => isSame(reviewer, each.reviewer, each.key_id))) {
      throw new GatewayError("APPROVAL_ENDORSED", "expected another reviewer: this one has said yes already");
    }
    await this.held(approval);
  }

  async #checkBreakGlass({ tenant, role }: Principal): Promise<void> {
    if (!this.#rule.allowBreakGlass || role !== "admin") {
      throw new GatewayError("BREAK_GLASS_FORBIDDEN", "expected `admin`, and `approvals.allow_break_glass: true`");
    }
    const open = await this.#book.parts.store.keys({ ...breakGlassRange(tenant), limit: maxBreakGlass }).all();
    if (open.length < maxBreakGlass) return;
    throw new GatewayError(
      "BREAK_GLASS_FORBIDDEN",
      `expected fewer than ${maxBreakGlass} uses without post-mortem: write one with \`gateway break-glass close\``,
    );
  }
}

/** A key that was changed under its name is another principal, and still the same person. */
function isSame(reviewer: Principal, id: string, keyId: string): boolean {
  return reviewer.id === id || reviewer.keyId === keyId;
}

/** Throws APPROVAL_STATE unless the approval was used in an emergency that nobody has accounted for. */
function openUse(approval: Approval): BreakGlass {
  const { break_glass: use } = approval;
  if (use !== undefined && use.post_mortem === undefined && isFinal(approval.state)) return use;
  const found = use === undefined ? "no break-glass use" : use.post_mortem ? "accounted for" : approval.state;
  throw wrongState(approval, `expected a break-glass use that is over and open, got \`${found}\``);
}

function wrongState({ id, state }: Approval, detail?: string): GatewayError {
  return new GatewayError("APPROVAL_STATE", detail ?? `the approval is \`${state}\``, { data: { id, state } });
}

export interface Yes {
  readonly scope: ApprovalScope;
  readonly comment?: string;
  /** Why this cannot wait for the reviewers it needs. */
  readonly breakGlass?: string;
}

/** What an answer makes of an approval, and what evidence tells of it. */
interface Answer {
  readonly next: Approval;
  readonly detail: JsonObject;
  readonly operations?: readonly BatchOperation[];
}

/** What one more yes makes of an approval: enough of them, or an emergency, approve it. */
function endorse(
  book: ApprovalBook,
  approval: Approval,
  reviewer: Principal,
  { scope, comment, breakGlass }: Yes,
): Answer {
  const at = book.now();
  const said = comment === undefined ? {} : { comment };
  const yes: Endorsement = { reviewer: reviewer.id, key_id: reviewer.keyId, at, scope, ...said };
  const endorsements = [...approval.endorsements, yes];
  const told = { reviewer: reviewer.id, scope, ...said };
  if (endorsements.length < approval.required && breakGlass === undefined) {
    return { next: { ...approval, endorsements }, detail: { event: "endorsed", ...told } };
  }
  // The narrowest that any of them said: nobody's yes is stretched.
  const agreed: ApprovalScope = endorsements.every((each) => each.scope === "task") ? "task" : "exact";
  const next: Approval = {
    ...approval,
    state: "approved",
    scope: agreed,
    endorsements,
    reviewed_at: at,
    reviewer: reviewer.id,
    ...said,
    expires_at: book.after(book.parts.limits.useMs),
    ...(breakGlass === undefined ? {} : { break_glass: { by: reviewer.id, reason: breakGlass, at } }),
  };
  const detail: JsonObject = {
    ...told,
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
