import type { ActionEffect, ActionFacts } from "../../action/action-fact.ts";
import { canonicalJson } from "../../action/canonical-json.ts";
import type { JsonObject } from "../../action/json.ts";
import { describeFacts } from "../../fact/fact-words.ts";
import type { ShownField } from "../bundle/build.ts";
import type { BundledRecord } from "../bundle/bundle-line.ts";
import type { CollectedSession } from "../bundle/session-export.ts";
import type {
  ActionRecord,
  EventRecord,
  EvidenceRecord,
  RecordedAction,
  RecordedPolicy,
  RecordedRedaction,
  RecordedShadowDecision,
} from "../record/record.ts";
import { isAction, isApprovalEvent } from "../record/record-text.ts";
import { parseCheckpoint } from "../tree/checkpoint.ts";

/** The name of the report's JSON shape. */
const reportSchema = "evidence-report-v1";

/** A policy as it took part in one decision. */
export interface ReportedPolicy {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  readonly signer: string | null;
  readonly verdict: string;
  /** False where another server decided; else absent. */
  readonly replayable?: false;
  /** `sha256:<hex>` over the bytes of that server's answer. */
  readonly answer_digest?: string;
}

/** The reasons for a decision: the determining rules, and their policies. */
export interface ReportedDecision {
  readonly decision: string;
  readonly by_default: boolean;
  readonly rules: readonly string[];
  readonly policies: readonly ReportedPolicy[];
  readonly errors: readonly string[];
  readonly risk: number;
  /** Decisions of rules in shadow mode. */
  readonly would_have: readonly RecordedShadowDecision[];
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
  /** Null where the arguments were not read by a parser. */
  readonly facts: ReportedFacts | null;
  readonly judged: ReportedDecision | null;
  /** The approval that it was held for or used: its whole history, before and after this action. */
  readonly approval: ReportedApproval | null;
  /** Null for what was not dispatched, and for what is still on its way. */
  readonly outcome: ReportedOutcome | null;
  readonly dispatched: boolean;
}

/** The facts of an action, as policies and reviewers saw them. */
interface ReportedFacts {
  readonly effect: ActionEffect;
  /** The words that reviewers see, of the facts that are shown. */
  readonly does: readonly string[];
  readonly fields: readonly ShownField[];
}

interface ReportedEvent {
  readonly seq: number;
  readonly time: string;
  readonly kind: string;
  readonly detail: JsonObject;
}

/** The evidence of one session, for a person. */
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
  /** Numbers of actions by decision and outcome. */
  readonly summary: Readonly<Record<"actions" | "allow" | "review" | "block" | Ending, number>>;
  readonly extensions: readonly Provenance[];
  readonly actions: readonly ReportedAction[];
  readonly events: readonly ReportedEvent[];
}

type Ending = "success" | "error" | "unknown" | "open";

/** Builds the report of a session: each action with its decision, the rules behind it, and its outcome. */
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
    facts: reportFacts(action, fields.get(seq)?.facts ?? []),
    judged: reportDecision(decision),
    outcome: outcome === undefined ? null : reportOutcome(outcome, fields),
    dispatched: decision.effect === "dispatched",
  };
}

function reportFacts({ facts }: RecordedAction, fields: readonly ShownField[]): ReportedFacts | null {
  if (facts === undefined) return null;
  const shown = Object.fromEntries(fields.flatMap((field) => ("value" in field ? [[field.name, field.value]] : [])));
  // As the gateway recorded them: their commitments were compared when they were read.
  const { effect } = facts;
  return { effect, does: describeFacts({ ...(shown as Partial<ActionFacts>), effect }), fields };
}

function reportOutcome(record: ActionRecord, fields: Fields): ReportedOutcome {
  const { effect, time, seq, reason } = record;
  const judged = reportDecision(record);
  const redactions = record.evaluation?.policies.flatMap((policy) => policy.redactions ?? []) ?? [];
  const shown = fields.get(seq)?.output ?? [];
  return { status: effect, time, seq, reason: reason ?? null, judged, redactions, fields: shown };
}

/** Lists the policies whose verdict is the decision; a rule of another cannot have made it. */
function reportDecision({ evaluation }: ActionRecord): ReportedDecision | null {
  if (evaluation === undefined) return null;
  const { by_default, decision, errors, risk, rules, would_have = [] } = evaluation;
  const policies = evaluation.policies
    .filter(({ verdict }) => verdict === decision)
    .map(({ name, version, digest, signer, verdict, replayable, answer_digest }) => ({
      ...{ name, version, digest, signer, verdict },
      ...(replayable === undefined ? {} : { replayable }),
      ...(answer_digest === undefined ? {} : { answer_digest }),
    }));
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

/** One thing that happened to an approval. */
export interface ReportedApprovalStep {
  readonly event: string;
  readonly seq: number;
  readonly time: string;
  /** The principal who did it; null for an event without one, such as an expiry. */
  readonly by: string | null;
  readonly scope: string | null;
  /** A comment, the reason of an expiry, or the text of a post-mortem. */
  readonly text: string | null;
}

/** The approval that an action was held for or used, from first to last. */
interface ReportedApproval {
  readonly id: string;
  /** The record of the decision that held an action for it; null where the chain shows none. */
  readonly held: number | null;
  readonly steps: readonly ReportedApprovalStep[];
  readonly break_glass: { readonly reason: string; readonly post_mortem: ReportedApprovalStep | null } | null;
  /** The record of the decision that used it. */
  readonly used: number | null;
}

/** The approvals of a session's records, by id. */
function listApprovals(records: readonly EvidenceRecord[]): ReadonlyMap<string, ReportedApproval> {
  const decisions = records
    .filter(isAction)
    .filter(({ kind, approval }) => kind === "decision" && approval !== undefined);
  const events = records.filter(isApprovalEvent);
  const ids = new Set([
    ...decisions.map((decision) => decision.approval?.id),
    ...events.map(({ detail }) => detail.id),
  ]);
  const approvals = [...ids].filter((id) => typeof id === "string").map((id) => reportApproval(id, decisions, events));
  return new Map(approvals.map((approval) => [approval.id, approval]));
}

function reportApproval(
  id: string,
  decisions: readonly ActionRecord[],
  events: readonly EventRecord[],
): ReportedApproval {
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

/** An extension that took part, and its signer. */
interface Provenance {
  readonly digest: string;
  readonly kind: string;
  readonly name: string;
  readonly signer: string | null;
  /** The trust that the gateway had in the signer when it loaded the extension. */
  readonly trust: "signed" | "unsigned";
  readonly version: string;
}

/** Lists every extension that took part in judging these records, each once, in the order of their canonical texts. */
function listProvenance(records: readonly BundledRecord[]): readonly Provenance[] {
  const found = new Map<string, Provenance>();
  for (const { record } of records) {
    const evaluation = isAction(record) ? record.evaluation : undefined;
    for (const policy of [...(evaluation?.policies ?? []), ...(evaluation?.shadow ?? [])]) {
      const provenance = provenanceOf(policy);
      found.set(canonicalJson({ ...provenance }), provenance);
    }
  }
  return [...found.keys()].sort().map((key) => found.get(key) as Provenance);
}

function provenanceOf({ digest, kind, name, signer, version }: RecordedPolicy): Provenance {
  return { digest, kind, name, signer, trust: signer === null ? "unsigned" : "signed", version };
}
