import { canonicalJson } from "./canonical-json.ts";
import type { Capability } from "./capability.ts";
import type { BatchOperation } from "./commit-hook.ts";
import type { ActionEnvelope, Protocol } from "./envelope.ts";
import type { Evaluation } from "./evaluation.ts";
import type { Finding } from "./policy.ts";
import type { Transport } from "./principal.ts";
import type { Role } from "./role.ts";

export const approvalStates = ["pending", "approved", "denied", "expired", "consumed"] as const;
export type ApprovalState = (typeof approvalStates)[number];

export type ApprovalTransition = "approve" | "deny" | "expire" | "consume";

/** The only place that knows which state follows which. */
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

/** Whether nothing can happen to it any more. */
export function isFinal(state: ApprovalState): boolean {
  return Object.keys(transitions[state]).length === 0;
}

/** `exact`: this very action. `task`: the same, whatever values its arguments have. Both are good for one use. */
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
/** Why an approval ended without being used. */
export type ExpiryReason = (typeof expiryReasons)[number];

/** What a reviewer was shown beside the action itself: where one of these is another by the time of use, it is void. */
interface ApprovalBound {
  /** Digest of the tool's definition; null for what has none. */
  readonly tool_definition: string | null;
  /** `<kind>:<name>@<digest>` of every policy that took part, sorted. */
  readonly policies: readonly string[];
}

/** One reviewer's yes. */
export interface Endorsement {
  /** The principal; never what a request says of itself. */
  readonly reviewer: string;
  readonly key_id: string;
  /** RFC 3339. */
  readonly at: string;
  readonly scope: ApprovalScope;
  readonly comment?: string;
}

/** An approval given by one administrator against the rules of review; open until somebody says what happened. */
export interface BreakGlass {
  readonly by: string;
  readonly reason: string;
  readonly at: string;
  readonly post_mortem?: { readonly by: string; readonly text: string; readonly at: string };
}

/**
 * A single-use permission in the making, as it is stored and shown. It holds no argument: those lie sealed beside the
 * decision that held the action.
 */
export interface Approval {
  readonly id: string;
  readonly tenant: string;
  readonly state: ApprovalState;
  readonly scope: ApprovalScope;
  /** What it is bound to, as evidence says it: a keyed commitment. */
  readonly fingerprint: string;
  /** The same without the values of the arguments. */
  readonly task_fingerprint: string;
  /** Who asked. */
  readonly principal: { readonly id: string; readonly key_id: string; readonly role: Role };
  readonly session: { readonly id: string; readonly transport: Transport };
  readonly action: ApprovedAction & { readonly id: string };
  readonly evaluation: {
    readonly id: string;
    readonly by_default: boolean;
    readonly risk: number;
    readonly rules: readonly string[];
  };
  /** What its session was tainted with then; left out where that was nothing. */
  readonly tainted?: readonly string[];
  readonly bound: ApprovalBound;
  /** Reviewers that must say yes. */
  readonly required: number;
  readonly endorsements: readonly Endorsement[];
  /** Sequence number of the decision that held the action. */
  readonly held_seq: number;
  /** RFC 3339, like every time here. */
  readonly requested_at: string;
  /** End of the time to review, then of the time to use. */
  readonly expires_at: string;
  readonly reviewed_at?: string;
  /** The principal whose yes or no decided. */
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

/** What evidence says of one approval. */
export interface RecordedApprovalState {
  readonly state: ApprovalState;
  /** Of the action that was held; of what was approved once it is. */
  readonly fingerprint: string;
}

/** What evidence says of a tenant's approvals. */
export interface RecordedApprovalStates {
  readonly byId: ReadonlyMap<string, RecordedApprovalState>;
  /** The latest time that any record bears, not that of the last one: the clock may have been set back between. */
  readonly latestMs: number;
}

/** Everything a reviewer must see to decide: the action as it would be dispatched, and why it is held. */
export interface HeldAction {
  readonly action: ActionEnvelope;
  readonly determining: readonly Finding[];
}

/** What an action and its evaluation bind an approval to, beside the fingerprint. */
export function boundBy(action: ActionEnvelope, evaluation: Evaluation): ApprovalBound {
  const policies = evaluation.verdicts.map(({ policy }) => `${policy.kind}:${policy.name}@${policy.digest}`);
  return { tool_definition: action.tool_definition?.digest ?? null, policies: [...new Set(policies)].sort() };
}

/** Why what was reviewed is not what would run now; undefined where it is. */
export function whyVoid(reviewed: ApprovalBound, now: ApprovalBound): ExpiryReason | undefined {
  if (reviewed.tool_definition !== now.tool_definition) return "tool_changed";
  return canonicalJson([...reviewed.policies]) === canonicalJson([...now.policies]) ? undefined : "policy_changed";
}

/**
 * What a person's approval permits: to dispatch this very action, once.
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

/** What an approval adds to the decision about an action: all of it happens with the decision, or nothing. */
export interface ApprovalStep {
  /** As the decision's record tells it. */
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

/** Whether the action is dispatched for its approval. */
export function isConsuming(step: ApprovalStep): boolean {
  return step.approval.state === "consumed";
}

/** An earlier approval of the same action that no longer holds. */
export interface FormerApproval {
  readonly id: string;
  readonly state: ApprovalState;
  readonly reason?: ExpiryReason;
}

/**
 * The place that the approval queue keeps for an action while its decision is committed. `granted`: a person's approval is
 * taken for it. `held`: it waits for review; `isNew`: this request created the approval. `full`: nobody is asked.
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
  | { readonly kind: "full" };
