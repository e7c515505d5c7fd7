import type { JsonObject } from "../../kernel/json.ts";
import type { ActionRecord, EventRecord, EvidenceRecord } from "../record.ts";
import { isAction, isApprovalEvent } from "../record-text.ts";

/** One thing that happened to an approval. */
export interface ReportedApprovalStep {
  readonly event: string;
  readonly seq: number;
  readonly time: string;
  /** The principal who said so; null where nobody did, as when it expired. */
  readonly by: string | null;
  readonly scope: string | null;
  /** What was said with it: a comment, why it expired, or the text of a post-mortem. */
  readonly text: string | null;
}

/** The approval that an action was held for or used, from first to last. */
export interface ReportedApproval {
  readonly id: string;
  /** The record of the decision that held an action for it; null where the chain shows none. */
  readonly held: number | null;
  readonly steps: readonly ReportedApprovalStep[];
  readonly break_glass: { readonly reason: string; readonly post_mortem: ReportedApprovalStep | null } | null;
  /** The record of the decision that used it. */
  readonly used: number | null;
}

/** The approvals of a session's records, by id. */
export function listApprovals(records: readonly EvidenceRecord[]): ReadonlyMap<string, ReportedApproval> {
  const decisions = records
    .filter(isAction)
    .filter(({ kind, approval }) => kind === "decision" && approval !== undefined);
  const events = records.filter(isApprovalEvent);
  const ids = new Set([
    ...decisions.map((decision) => decision.approval?.id),
    ...events.map(({ detail }) => detail.id),
  ]);
  const approvals = [...ids].filter((id) => typeof id === "string").map((id) => tellStory(id, decisions, events));
  return new Map(approvals.map((approval) => [approval.id, approval]));
}

function tellStory(id: string, decisions: readonly ActionRecord[], events: readonly EventRecord[]): ReportedApproval {
  const own = decisions.filter(({ approval }) => approval?.id === id);
  const happened = events.filter(({ detail }) => detail.id === id);
  const steps = happened.map(reportStep);
  const glass = happened.find(({ detail }) => detail.event === "approved")?.detail.break_glass as
    | JsonObject
    | undefined;
  const postMortem = steps.find(({ event }) => event === "post_mortem") ?? null;
  return {
    id,
    held: own.find(({ approval }) => approval?.state === "pending")?.seq ?? null,
    steps,
    break_glass: glass === undefined ? null : { reason: textOf(glass.reason) ?? "", post_mortem: postMortem },
    used: own.find(({ approval }) => approval?.state === "consumed")?.seq ?? null,
  };
}

function reportStep({ detail, seq, time }: EventRecord): ReportedApprovalStep {
  return {
    event: textOf(detail.event) ?? "",
    seq,
    time,
    by: textOf(detail.reviewer) ?? textOf(detail.by),
    scope: textOf(detail.scope),
    text: textOf(detail.comment) ?? textOf(detail.text) ?? textOf(detail.reason),
  };
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
