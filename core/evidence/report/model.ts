import type { Json, JsonObject } from "../../kernel/json.ts";
import type { ShownField } from "../bundle/build.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import type { ActionRecord, EventRecord, RecordedRedaction, RecordedTrial } from "../record.ts";
import { isAction } from "../record-text.ts";
import type { CollectedSession } from "../session-export.ts";
import { listApprovals, type ReportedApproval } from "./approval-story.ts";
import { listProvenance, type Provenance } from "./provenance.ts";

/** The name of the report's JSON shape. */
export const reportSchema = "evidence-report-v1";

/** A policy as it took part in one decision. */
export interface ReportedPolicy {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  readonly signer: string | null;
  readonly verdict: string;
}

/** Why something was allowed, held or blocked: the rules that made it so, and the policies that hold them. */
export interface ReportedDecision {
  readonly decision: string;
  readonly by_default: boolean;
  readonly rules: readonly string[];
  readonly policies: readonly ReportedPolicy[];
  readonly errors: readonly string[];
  readonly risk: number;
  /** What rules in shadow mode would have done. */
  readonly would_have: readonly RecordedTrial[];
}

export interface ReportedOutcome {
  readonly status: string;
  readonly time: string;
  readonly seq: number;
  readonly reason: string | null;
  readonly judged: ReportedDecision | null;
  /** By which rules the answer was redacted before anyone saw it, and in how many places each. */
  readonly redactions: readonly RecordedRedaction[];
  readonly fields: readonly ShownField[];
}

/** One action from attempt to answer. */
export interface ReportedAction {
  readonly id: string;
  readonly seq: number;
  readonly time: string;
  readonly tool: string;
  readonly target: string;
  readonly capability: string;
  readonly principal: string;
  readonly key_id: string;
  readonly role: string;
  readonly client: string;
  readonly arguments: readonly ShownField[];
  readonly judged: ReportedDecision | null;
  /** What it was held for, or passed on: the whole story of the approval, before and after this action. */
  readonly approval: ReportedApproval | null;
  /** Null for what was not dispatched, and for what is still on its way. */
  readonly outcome: ReportedOutcome | null;
  readonly dispatched: boolean;
}

export interface ReportedEvent {
  readonly seq: number;
  readonly time: string;
  readonly kind: string;
  readonly detail: JsonObject;
}

/** What one session's evidence says, for a person. */
export interface SessionReport {
  readonly schema: typeof reportSchema;
  readonly tenant: string;
  readonly chain: string;
  readonly session: string;
  readonly label: string | null;
  readonly created: string;
  readonly checkpoint: { readonly size: number; readonly head: string; readonly time: string; readonly key_id: string };
  /** Records of the session that came before the first one here: they were pruned. */
  readonly pruned_records: number;
  /** How many actions came to what. */
  readonly summary: Readonly<Record<"actions" | "allow" | "review" | "block" | Ending, number>>;
  readonly extensions: readonly Provenance[];
  readonly actions: readonly ReportedAction[];
  readonly events: readonly ReportedEvent[];
}

type Ending = "success" | "error" | "unknown" | "open";

/** Tells a session's records as a story: what was asked, decided, by which rule, and what came of it. */
export function buildReport({ content, records }: CollectedSession): SessionReport {
  const checkpoint = parseCheckpoint(content.checkpoint);
  if (checkpoint === undefined) throw new TypeError("buildReport: expected a checkpoint's note");
  const steps = records.flatMap(({ record }) => (isAction(record) ? [record] : []));
  const outcomes = new Map(steps.filter(({ kind }) => kind === "outcome").map((step) => [step.action.id, step]));
  const approvals = listApprovals(records.map(({ record }) => record));
  const actions = steps
    .filter(({ kind }) => kind === "decision")
    .map((step) => ({
      ...reportAction(step, outcomes.get(step.action.id), content.fields),
      approval: approvals.get(step.approval?.id ?? "") ?? null,
    }));
  const { chain, size, head, time } = checkpoint;
  return {
    schema: reportSchema,
    tenant: content.tenant,
    chain,
    session: content.session,
    label: steps[0]?.session.label ?? null,
    created: content.created,
    checkpoint: { size, head, time, key_id: content.keyId },
    pruned_records: steps[0]?.session.index ?? 0,
    summary: summarize(actions),
    extensions: listProvenance(records),
    actions,
    events: records.flatMap(({ record }) => (isAction(record) ? [] : [reportEvent(record)])),
  };
}

type Fields = CollectedSession["content"]["fields"];

function reportAction(
  decision: ActionRecord,
  outcome: ActionRecord | undefined,
  fields: Fields,
): Omit<ReportedAction, "approval"> {
  const { action, principal, client, seq, time } = decision;
  return {
    id: action.id,
    seq,
    time,
    tool: action.tool,
    target: action.target,
    capability: action.capability,
    principal: principal.id,
    key_id: principal.key_id,
    role: principal.role,
    client: `${client.name} ${client.version}`,
    arguments: fields.get(seq)?.arguments ?? [],
    judged: reportDecision(decision),
    outcome: outcome === undefined ? null : reportOutcome(outcome, fields),
    dispatched: decision.effect === "dispatched",
  };
}

function reportOutcome(record: ActionRecord, fields: Fields): ReportedOutcome {
  const { effect, time, seq, reason } = record;
  const judged = reportDecision(record);
  const redactions = record.evaluation?.policies.flatMap((policy) => policy.redactions ?? []) ?? [];
  const shown = fields.get(seq)?.output ?? [];
  return { status: effect, time, seq, reason: reason ?? null, judged, redactions, fields: shown };
}

/** Of the policies, those that said what was decided; a rule of another cannot have made the decision. */
function reportDecision({ evaluation }: ActionRecord): ReportedDecision | null {
  if (evaluation === undefined) return null;
  const { by_default, decision, errors, risk, rules, would_have = [] } = evaluation;
  const policies = evaluation.policies
    .filter(({ verdict }) => verdict === decision)
    .map(({ name, version, digest, signer, verdict }) => ({ name, version, digest, signer, verdict }));
  return { decision, by_default, rules, policies, errors, risk, would_have };
}

function reportEvent({ seq, time, kind, detail }: EventRecord): ReportedEvent {
  return { seq, time, kind, detail };
}

function summarize(actions: readonly ReportedAction[]): SessionReport["summary"] {
  const count = (holds: (action: ReportedAction) => boolean): number => actions.filter(holds).length;
  const ended = (status: string): number => count(({ outcome }) => outcome?.status === status);
  const decided = (word: string): number => count(({ judged }) => judged?.decision === word);
  return {
    actions: actions.length,
    allow: decided("allow"),
    review: decided("review"),
    block: decided("block"),
    success: ended("success"),
    error: ended("error"),
    unknown: ended("unknown"),
    open: count(({ dispatched, outcome }) => dispatched && outcome === null),
  };
}

/** The report as JSON. */
export function reportJson(report: SessionReport): Json {
  return report as unknown as Json;
}
