import { type Approval, type HeldAction, isFinal } from "../action/approval.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Finding } from "../action/policy.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import type { SessionSummary } from "../evidence/chain/session-head.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { ActionRecord, Effect, RecordedAction, RecordedApproval } from "../evidence/record/record.ts";
import type { Approvals } from "./approvals.ts";
import { type ArgumentChange, diffArguments } from "./argument-diff.ts";
import { findLastUsed } from "./history.ts";

export interface ApprovalParts {
  readonly approvals: Approvals;
  readonly ledger: Ledger;
}

/** What a reviewer needs to decide. */
export interface ApprovalView {
  readonly approval: Approval;
  /** The action whole, or null; then `withheld` says why. */
  readonly held: HeldView | null;
  /**
   * `role`: the caller may not review. `over`: nothing is left to decide. `incomplete`: it is not kept whole, and cannot
   * be approved.
   */
  readonly withheld: "role" | "over" | "incomplete" | null;
  /** How the arguments differ from those that ran last with the same tool; null where there is nothing to compare with. */
  readonly changes: ChangeView | null;
  /** The session's last actions, in order. */
  readonly recent: readonly RecentAction[];
  /** Null where its evidence is kept no more. */
  readonly session: SessionSummary | null;
  /** 0 to 100, of the action. */
  readonly risk: number;
}

interface HeldView {
  readonly action: ActionEnvelope;
  readonly rules: readonly Pick<Finding, "rule" | "message" | "severity">[];
}

export interface ChangeView {
  /** The approval by which it ran last. */
  readonly since: string;
  readonly items: readonly ArgumentChange[];
  /** How many more there are. */
  readonly omitted: number;
}

export interface RecentAction extends Pick<RecordedAction, "capability" | "id" | "target" | "tool"> {
  readonly time: string;
  readonly decision: Decision | null;
  readonly rules: readonly string[];
  readonly approval: Pick<RecordedApproval, "id" | "state"> | null;
  /** What became of it, as far as it is known. */
  readonly effect: Effect;
}

const maxRecent = 10;
/** A decision and an outcome each, and some for answers that were judged while others ran. */
const maxRecords = 4 * maxRecent;

/**
 * One approval with all that is known about it. Arguments come whole or not at all, and only for a caller who may
 * review; that they were looked at is on record before they are read. Throws NOT_FOUND.
 */
export async function viewApproval(parts: ApprovalParts, caller: Principal, id: string): Promise<ApprovalView> {
  const { book } = parts.approvals;
  const approval = await book.find(caller.tenant, id);
  const { held, withheld } = await readHeld(parts, caller, approval);
  const tail = await parts.ledger.approvals.session(caller.tenant, approval.session.id, maxRecords);
  return {
    approval,
    held: held === null ? null : { action: held.action, rules: held.determining.map(viewRule) },
    withheld,
    changes: held === null ? null : await findChanges(parts, approval, held),
    recent: recentActions(tail?.records ?? []),
    session: tail?.summary ?? null,
    risk: approval.evaluation.risk,
  };
}

type ReadHeld =
  | { readonly held: HeldAction; readonly withheld: null }
  | { readonly held: null; readonly withheld: NonNullable<ApprovalView["withheld"]> };

async function readHeld(parts: ApprovalParts, caller: Principal, approval: Approval): Promise<ReadHeld> {
  if (!can(caller.role, "approval.review")) return { held: null, withheld: "role" };
  if (isFinal(approval.state)) return { held: null, withheld: "over" };
  const shown = { action: "approval.disclose", principal: caller.id, approval: approval.id };
  await parts.ledger.recordEvent(caller.tenant, "admin", shown);
  try {
    return { held: await parts.approvals.review.held(approval), withheld: null };
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === "APPROVAL_INCOMPLETE")) throw error;
    return { held: null, withheld: "incomplete" };
  }
}

function viewRule({ rule, message, severity }: Finding): HeldView["rules"][number] {
  return { rule, message, severity };
}

async function findChanges(
  { approvals, ledger }: ApprovalParts,
  approval: Approval,
  { action }: HeldAction,
): Promise<ChangeView | null> {
  const used = await findLastUsed(approvals.book, approval);
  if (used?.consumed_seq === undefined) return null;
  const before = await ledger.approvals.arguments(approval.tenant, used.consumed_seq);
  if (before === undefined) return null;
  const { changes, omitted } = diffArguments(before, action.arguments);
  return { since: used.id, items: changes, omitted };
}

function recentActions(records: readonly ActionRecord[]): readonly RecentAction[] {
  const outcomes = new Map(
    records.flatMap(({ kind, action, effect }) => (kind === "outcome" ? [[action.id, effect]] : [])),
  );
  return records
    .filter(({ kind }) => kind === "decision")
    .slice(-maxRecent)
    .map((decision) => viewRecent(decision, outcomes.get(decision.action.id) ?? decision.effect));
}

function viewRecent({ time, action, evaluation, approval }: ActionRecord, effect: Effect): RecentAction {
  const { capability, id, target, tool } = action;
  return {
    time,
    id,
    capability,
    tool,
    target,
    decision: evaluation?.decision ?? null,
    rules: evaluation?.rules ?? [],
    approval: approval === undefined ? null : { id: approval.id, state: approval.state },
    effect,
  };
}
