import { type Approval, type HeldAction, isFinal } from "../action/approval.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Finding } from "../action/policy.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import type { SessionSummary } from "../evidence/chain/session-record.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { ActionRecord, Effect, RecordedAction, RecordedApproval } from "../evidence/record/record.ts";
import type { Notice } from "../notify/webhook-notifier.ts";
import type { Approvals } from "./approvals.ts";
import { type ArgumentChange, diffArguments } from "./argument-diff.ts";
import { findLastUsed } from "./history.ts";
import { summarizeAction } from "./summary.ts";

export interface ApprovalViewSources {
  readonly approvals: Approvals;
  readonly ledger: Ledger;
}

/** An approval with what a reviewer needs to decide. */
export interface ApprovalView {
  readonly approval: Approval;
  /** The whole action; null where it is withheld. */
  readonly held: HeldView | null;
  /**
   * `role`: the caller may not review. `over`: the approval is final. `incomplete`: the action is not kept whole, and
   * cannot be approved.
   */
  readonly withheld: "role" | "over" | "incomplete" | null;
  /** Differences from the arguments of the latest run with the same tool; null where there is none to compare with. */
  readonly changes: ChangeView | null;
  /** The session's latest actions, in order. */
  readonly recent: readonly RecentAction[];
  /** Null where its evidence is no longer kept. */
  readonly session: SessionSummary | null;
  /** 0 to 100, of the action. */
  readonly risk: number;
}

interface HeldView {
  readonly action: ActionEnvelope;
  /** The words for what the action does, by its typed facts. */
  readonly does: readonly string[];
  readonly rules: readonly Pick<Finding, "rule" | "message" | "severity">[];
}

export interface ChangeView {
  /** The approval of that latest run. */
  readonly since: string;
  readonly items: readonly ArgumentChange[];
  /** The number of further changes. */
  readonly omitted: number;
}

export interface RecentAction extends Pick<RecordedAction, "capability" | "id" | "target" | "tool"> {
  readonly time: string;
  readonly decision: Decision | null;
  readonly rules: readonly string[];
  readonly approval: Pick<RecordedApproval, "id" | "state"> | null;
  /** The known outcome. */
  readonly effect: Effect;
}

const maxRecent = 10;
/** A decision and an outcome each, and some for outputs that were evaluated meanwhile. */
const maxRecords = 4 * maxRecent;

/**
 * Returns one approval with all that is known about it. Arguments are included whole or not at all, and only for a caller
 * who may review; the disclosure is recorded before they are read. Throws NOT_FOUND.
 */
export async function viewApproval(sources: ApprovalViewSources, caller: Principal, id: string): Promise<ApprovalView> {
  const { store } = sources.approvals;
  const approval = await store.find(caller.tenant, id);
  const { held, withheld } = await readHeld(sources, caller, approval);
  const tail = await sources.ledger.approvals.session(caller.tenant, approval.session.id, maxRecords);
  return {
    approval,
    held: held === null ? null : viewHeld(held),
    withheld,
    changes: held === null ? null : await findChanges(sources, approval, held),
    recent: recentActions(tail?.records ?? []),
    session: tail?.summary ?? null,
    risk: approval.evaluation.risk,
  };
}

type ReadHeld =
  | { readonly held: HeldAction; readonly withheld: null }
  | { readonly held: null; readonly withheld: NonNullable<ApprovalView["withheld"]> };

async function readHeld(sources: ApprovalViewSources, caller: Principal, approval: Approval): Promise<ReadHeld> {
  if (!can(caller.role, "approval.review")) return { held: null, withheld: "role" };
  if (isFinal(approval.state)) return { held: null, withheld: "over" };
  const disclosure = { action: "approval.disclose", principal: caller.id, approval: approval.id };
  await sources.ledger.recordEvent(caller.tenant, "admin", disclosure);
  try {
    return { held: await sources.approvals.review.readHeld(approval), withheld: null };
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === "APPROVAL_INCOMPLETE")) throw error;
    return { held: null, withheld: "incomplete" };
  }
}

function viewHeld({ action, determining }: HeldAction): HeldView {
  return { action, does: summarizeAction(action).does, rules: determining.map(viewRule) };
}

function viewRule({ rule, message, severity }: Finding): HeldView["rules"][number] {
  return { rule, message, severity };
}

async function findChanges(
  { approvals, ledger }: ApprovalViewSources,
  approval: Approval,
  { action }: HeldAction,
): Promise<ChangeView | null> {
  const used = await findLastUsed(approvals.store, approval);
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

/**
 * Builds the webhook notice of an approval; undefined for a consumed one, which needs no reaction. It contains no argument,
 * no comment, and nothing that could replace the key of a reviewer. `reviewUrl`: the page where it is reviewed, with `{id}` for its id.
 */
export function approvalNotice(approval: Approval, time: string, reviewUrl: string | null): Notice | undefined {
  const { id, tenant, state, action, evaluation, principal, session } = approval;
  if (state === "consumed") return undefined;
  return {
    type: `approval.${state}`,
    tenant,
    time,
    data: {
      id,
      state,
      capability: action.capability,
      protocol: action.protocol,
      target: action.target,
      tool: action.tool,
      rules: evaluation.rules,
      risk: evaluation.risk,
      tainted: approval.tainted ?? [],
      principal: principal.id,
      session: session.id,
      required: approval.required,
      endorsed: approval.endorsements.length,
      requested_at: approval.requested_at,
      expires_at: approval.expires_at,
      reviewer: approval.reviewer ?? null,
      reason: approval.reason ?? null,
      break_glass: approval.break_glass !== undefined,
      review_url: reviewUrl?.replaceAll("{id}", id) ?? null,
    },
  };
}
