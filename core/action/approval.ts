import { canonicalJson } from "./canonical-json.ts";
import type { Capability } from "./capability.ts";
import type { BatchOperation } from "./commit-hook.ts";
import type { ActionEnvelope, Protocol } from "./envelope.ts";
import type { Evaluation } from "./evaluation.ts";
import type { ShareScope } from "./place-share.ts";
import type { Finding } from "./policy.ts";
import type { Transport } from "./principal.ts";
import type { Role } from "./role.ts";

export const approvalStates = ["pending", "approved", "denied", "expired", "consumed"] as const;
export type ApprovalState = (typeof approvalStates)[number];

export type ApprovalTransition = "approve" | "deny" | "expire" | "consume";

/** All transitions between states. */
const transitions: Readonly<Record<ApprovalState, Partial<Record<ApprovalTransition, ApprovalState>>>> = {
  pending: { approve: "approved", deny: "denied", expire: "expired" },
  approved: { consume: "consumed", expire: "expired" },
  denied: {},
  expired: {},
  consumed: {},
};

/** The state that follows; undefined where this transition does not exist. */
export function stateAfter(state: ApprovalState, transition: ApprovalTransition): ApprovalState | undefined {
  return transitions[state][transition];
}

/** Returns whether a state has no further transitions. */
export function isFinal(state: ApprovalState): boolean {
  return Object.keys(transitions[state]).length === 0;
}

/** `exact`: exactly this action. `task`: the same action with any argument values. Both permit one use. */
export const approvalScopes = ["exact", "task"] as const;
export type ApprovalScope = (typeof approvalScopes)[number];

export const expiryReasons = [
  "not_reviewed_in_time",
  "not_used_in_time",
  "tool_changed",
  "policy_changed",
  "connection_closed",
  "clock_set_back",
  "identity_not_bound",
  "contradicted_by_evidence",
  "use_not_recorded",
  "request_not_recorded",
  "restored",
] as const;
/** The reason why an approval ended without being used. */
export type ExpiryReason = (typeof expiryReasons)[number];

/** The definitions that a reviewer saw beside the action: if one has changed by the time of use, the approval is void. */
interface ApprovalBound {
  /** Digest of the tool's definition; null for what has none. */
  readonly tool_definition: string | null;
  /** `<kind>:<name>@<digest>` of every policy that took part, sorted. */
  readonly policies: readonly string[];
}

/** The approval of one reviewer. */
export interface Endorsement {
  /** The authenticated principal, never a name from the request. */
  readonly reviewer: string;
  readonly key_id: string;
  /** RFC 3339. */
  readonly at: string;
  readonly scope: ApprovalScope;
  readonly comment?: string;
}

/** An approval by one administrator outside the rules of review; open until there is a post-mortem. */
export interface BreakGlass {
  readonly by: string;
  readonly reason: string;
  readonly at: string;
  readonly post_mortem?: { readonly by: string; readonly text: string; readonly at: string };
}

/**
 * A single-use permission and its review, as stored and shown. It contains no arguments: those are sealed beside the
 * decision that held the action.
 */
export interface Approval {
  readonly id: string;
  readonly tenant: string;
  readonly state: ApprovalState;
  readonly scope: ApprovalScope;
  /** The commitment to the action that it is bound to, as in evidence. */
  readonly fingerprint: string;
  /** The same without the values of the arguments. */
  readonly task_fingerprint: string;
  /** The requester. */
  readonly principal: { readonly id: string; readonly key_id: string; readonly role: Role };
  readonly session: { readonly id: string; readonly transport: Transport };
  readonly action: ApprovedAction & { readonly id: string };
  readonly evaluation: {
    readonly id: string;
    readonly by_default: boolean;
    readonly risk: number;
    readonly rules: readonly string[];
  };
  /** The taints of its session at that time; absent where there were none. */
  readonly tainted?: readonly string[];
  readonly bound: ApprovalBound;
  /** Reviewers who must approve. */
  readonly required: number;
  readonly endorsements: readonly Endorsement[];
  /** Sequence number of the decision that held the action. */
  readonly held_seq: number;
  /** RFC 3339, like every time here. */
  readonly requested_at: string;
  /** End of the time to review, then of the time to use. */
  readonly expires_at: string;
  readonly reviewed_at?: string;
  /** The principal whose review decided. */
  readonly reviewer?: string;
  readonly comment?: string;
  readonly consumed_at?: string;
  /** Sequence number of the decision that used it. */
  readonly consumed_seq?: number;
  readonly reason?: ExpiryReason;
  readonly break_glass?: BreakGlass;
}

/** The part of an action that an approval of scope `task` is still about. */
interface ApprovedAction {
  readonly capability: Capability;
  readonly protocol: Protocol;
  readonly target: string;
  readonly task: string | null;
  readonly tool: string;
}

/** The state of one approval according to evidence. */
export interface RecordedApprovalState {
  readonly state: ApprovalState;
  /** The fingerprint of the held action; of the approved scope once it is approved. */
  readonly fingerprint: string;
}

/** The states of a tenant's approvals according to evidence. */
export interface RecordedApprovalStates {
  readonly byId: ReadonlyMap<string, RecordedApprovalState>;
  /** The latest time in any record, not that of the last record: the clock may have been set back in between. */
  readonly latestMs: number;
}

/** The view of a reviewer: the action as it would be dispatched, and the findings that hold it. */
export interface HeldAction {
  readonly action: ActionEnvelope;
  readonly determining: readonly Finding[];
}

/** Returns the definitions that bind an approval of an action, beside the fingerprint. */
export function boundBy(action: ActionEnvelope, evaluation: Evaluation): ApprovalBound {
  const policies = evaluation.verdicts.map(({ policy }) => `${policy.kind}:${policy.name}@${policy.digest}`);
  return { tool_definition: action.tool_definition?.digest ?? null, policies: [...new Set(policies)].sort() };
}

/** Returns the reason why an approval no longer matches what would run now; undefined where it matches. */
export function whyVoid(reviewed: ApprovalBound, now: ApprovalBound): ExpiryReason | undefined {
  if (reviewed.tool_definition !== now.tool_definition) return "tool_changed";
  return canonicalJson([...reviewed.policies]) === canonicalJson([...now.policies]) ? undefined : "policy_changed";
}

/**
 * Permission from a reviewer to dispatch one action, once.
 *
 * INVARIANT: one exists only where an approval was approved and is consumed by it. `core/approval/queue.ts` is the only
 * caller of `grantUse`; the architecture test holds that.
 */
export class ApprovalGrant {
  readonly approvalId: string;
  readonly #actionId: string;
  #spent = false;

  private constructor(approvalId: string, actionId: string) {
    this.approvalId = approvalId;
    this.#actionId = actionId;
  }

  static grantUse(approvalId: string, action: ActionEnvelope): ApprovalGrant {
    return new ApprovalGrant(approvalId, action.id);
  }

  /** Takes the grant. Throws TypeError for a look-alike, for another action, and for a grant already spent. */
  static spend(grant: ApprovalGrant, action: ActionEnvelope): void {
    if (!(#spent in grant)) throw new TypeError("spend: expected an ApprovalGrant made by the queue");
    if (grant.#actionId !== action.id) throw new TypeError("spend: the grant is for another action");
    if (grant.#spent) throw new TypeError("spend: this grant was already spent");
    grant.#spent = true;
  }
}

/** The changes to an approval that commit with the decision about an action, atomically. */
export interface ApprovalStep {
  /** The approval as the decision's record names it. */
  readonly approval: {
    readonly fingerprint: string;
    readonly id: string;
    readonly reviewer: string | null;
    readonly state: ApprovalState;
  };
  /** JSON text of the HeldAction to keep, sealed, with this decision; null where nothing new is held. */
  readonly holds: string | null;
  /** The decision whose sealed action is deleted now; null where none is. */
  readonly releases: number | null;
  /** The approval's own entry; `seq` is the decision's. */
  readonly operations: (seq: number) => readonly BatchOperation[];
}

/** Returns whether the action is dispatched because of its approval. */
export function isConsuming(step: ApprovalStep | undefined): boolean {
  return step?.approval.state === "consumed";
}

/** An earlier approval of the same action that no longer holds. */
export interface FormerApproval {
  readonly id: string;
  readonly state: ApprovalState;
  readonly reason?: ExpiryReason;
}

/** The limit of the approval queue that leaves no room: of the requester's key, or of the tenant. */
export interface QueueLimit {
  readonly scope: Exclude<ShareScope, "gateway">;
  readonly unit: "approvals" | "bytes";
  readonly max: number;
  /** Seconds until the first of those that count ends by itself; null where the action alone exceeds the limit. */
  readonly retryS: number | null;
}

/**
 * The reservation that the approval queue keeps for an action while its decision is committed. `granted`: an approval is
 * used for it. `held`: it waits for review; `isNew`: this request created the approval. `full`: there is no room for
 * another approval.
 */
export type ApprovalReservation =
  | {
      readonly kind: "granted";
      readonly approval: Approval;
      readonly step: ApprovalStep;
      readonly grant: ApprovalGrant;
    }
  | {
      readonly kind: "held";
      readonly approval: Approval;
      readonly step: ApprovalStep;
      readonly isNew: boolean;
      readonly former: FormerApproval | undefined;
    }
  | { readonly kind: "denied"; readonly approval: Approval; readonly step: ApprovalStep }
  | { readonly kind: "full"; readonly limit: QueueLimit };
