import { sha256Hex } from "../../action/canonical-json.ts";
import type { TicketUse } from "../../action/capability-ticket.ts";
import type { ActionEnvelope, ClientIdentity, Outcome } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import { type Evaluation, type PolicyVerdict, shadowDecisions } from "../../action/evaluation.ts";
import { type Clock, type Random, uuidV7 } from "../../action/id.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { SessionScope } from "../../action/principal.ts";
import { durably, type EvidenceStore, epochKey } from "../record/key-space.ts";
import {
  type ActionKind,
  type ActionRecord,
  type Effect,
  type EventKind,
  type EvidenceRecord,
  type RecordedAction,
  type RecordedApproval,
  type RecordedEvaluation,
  type RecordedPolicy,
  type RecordedPrincipal,
  type RecordedRedaction,
  type RecordedSession,
  type RecordedShadowDecision,
  type RecordedTicket,
  type RecordWriter,
  recordSchema,
} from "../record/record.ts";
import { recordText } from "../record/record-text.ts";

/** A record with its exact bytes and their digest. */
export interface Sealed<R extends EvidenceRecord = EvidenceRecord> {
  readonly record: R;
  readonly text: string;
  /** SHA-256 (hex) of the text. */
  readonly hash: string;
}

/** The place of the next record in its chain. */
export interface RecordPlace {
  readonly tenant: string;
  readonly chain: string;
  readonly seq: number;
  readonly prevHash: string;
}

/** What every record of this process has in common, and where its time and salt come from. */
export interface Stamp {
  readonly clock: Clock;
  readonly random: Random;
  readonly writer: RecordWriter;
  readonly configDigest: string;
}

const saltBytes = 16;
const idBytes = 10;

// INVARIANT: the members of the literals below are in RFC 8785 order; `recordText` relies on it.

export function sealAction(
  body: ActionContent,
  place: RecordPlace,
  session: RecordedSession,
  stamp: Stamp,
): Sealed<ActionRecord> {
  const { id, salt, time } = mark(stamp);
  return seal({
    action: body.action,
    approval: body.approval,
    chain: place.chain,
    client: body.client,
    config_digest: stamp.configDigest,
    effect: body.effect,
    evaluation: body.evaluation,
    id,
    kind: body.kind,
    prev_hash: place.prevHash,
    principal: body.principal,
    reason: body.reason,
    salt,
    schema: recordSchema,
    seq: place.seq,
    session,
    tenant: place.tenant,
    ticket: body.ticket,
    time,
    writer: stamp.writer,
  });
}

export function sealEvent(body: EventContent, place: RecordPlace, stamp: Stamp): Sealed {
  const { id, salt, time } = mark(stamp);
  return seal({
    chain: place.chain,
    config_digest: stamp.configDigest,
    detail: body.detail,
    id,
    kind: body.kind,
    prev_hash: place.prevHash,
    salt,
    schema: recordSchema,
    seq: place.seq,
    tenant: place.tenant,
    time,
    writer: stamp.writer,
  });
}

function seal<R extends EvidenceRecord>(record: R): Sealed<R> {
  const text = recordText(record);
  return { record, text, hash: sha256Hex(text) };
}

function mark(stamp: Stamp): { readonly id: string; readonly salt: string; readonly time: string } {
  const now = stamp.clock();
  const bytes = stamp.random(idBytes + saltBytes);
  return {
    id: uuidV7(now, bytes.subarray(0, idBytes)),
    salt: base64Url(bytes.subarray(idBytes)),
    time: new Date(now).toISOString(),
  };
}

function base64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
}

/** The epoch of this process: one more than the last, on disk before any record carries it. */
export async function advanceEpoch(store: EvidenceStore): Promise<number> {
  const epoch = Number((await store.get(epochKey)) ?? 0) + 1;
  if (!Number.isSafeInteger(epoch)) throw new GatewayError("STATE_UNUSABLE", "expected `epoch` to be a number");
  await store.put(epochKey, String(epoch), durably);
  return epoch;
}

/** What an action's record says, before it has a place in a chain and in a session. */
export interface ActionContent {
  readonly kind: ActionKind;
  readonly action: RecordedAction;
  readonly approval: RecordedApproval | undefined;
  readonly client: ClientIdentity;
  readonly effect: Effect;
  readonly evaluation: RecordedEvaluation | undefined;
  readonly principal: RecordedPrincipal;
  readonly reason: string | undefined;
  readonly session: SessionScope;
  readonly ticket: RecordedTicket | undefined;
}

export interface EventContent {
  readonly kind: EventKind;
  readonly detail: JsonObject;
}

/** What an outcome repeats of its decision. */
export interface Bound {
  readonly fingerprint: string;
  readonly argumentsDigest: string;
}

const maxReason = 1_024;

// INVARIANT: the members of every literal below are in RFC 8785 order; `recordText` relies on it.

export function decisionBody(
  action: ActionEnvelope,
  evaluation: Evaluation,
  bound: Bound,
  approval?: RecordedApproval,
  use?: TicketUse,
): ActionContent {
  const dispatched = evaluation.decision === "allow" || approval?.state === "consumed";
  return {
    kind: "decision",
    action: recordAction(action, bound, undefined),
    approval: approval === undefined ? undefined : recordApproval(approval),
    client: recordClient(action),
    effect: dispatched ? "dispatched" : "not_dispatched",
    evaluation: recordEvaluation(evaluation),
    principal: recordPrincipal(action),
    reason: undefined,
    session: action.session,
    ticket: recordTicket(action, use),
  };
}

/** `outputDigest` is the commitment to the answer; undefined where there was none. */
export function outcomeBody(
  action: ActionEnvelope,
  outcome: Outcome,
  judged: Evaluation | undefined,
  bound: Bound,
  outputDigest: string | undefined,
): ActionContent {
  return {
    kind: "outcome",
    action: recordAction(action, bound, outputDigest),
    approval: undefined,
    client: recordClient(action),
    effect: outcome.status,
    evaluation: judged === undefined ? undefined : recordEvaluation(judged),
    principal: recordPrincipal(action),
    reason: outcome.status === "unknown" ? outcome.reason.slice(0, maxReason).toWellFormed() : undefined,
    session: action.session,
    ticket: undefined,
  };
}

/** The outcome of a decision whose own outcome can no longer be known. */
export function unknownBody(decision: ActionRecord, reason: string): ActionContent {
  const { id, label, transport } = decision.session;
  return {
    kind: "outcome",
    action: decision.action,
    approval: undefined,
    client: decision.client,
    effect: "unknown",
    evaluation: undefined,
    principal: decision.principal,
    reason,
    session: label === undefined ? { id, transport } : { id, label, transport },
    ticket: undefined,
  };
}

function recordAction(action: ActionEnvelope, bound: Bound, outputDigest: string | undefined): RecordedAction {
  return {
    arguments_digest: bound.argumentsDigest,
    capability: action.capability,
    fingerprint: bound.fingerprint,
    id: action.id,
    output_digest: outputDigest,
    phase: action.phase,
    protocol: action.protocol,
    target: action.target,
    task: action.task,
    tool: action.tool,
    tool_definition: action.tool_definition?.digest,
  };
}

function recordApproval({ fingerprint, id, reviewer, state }: RecordedApproval): RecordedApproval {
  return { fingerprint, id, reviewer, state };
}

function recordTicket({ ticket }: ActionEnvelope, use: TicketUse | undefined): RecordedTicket | undefined {
  return ticket && { id: ticket.id ?? undefined, of: use?.of, standing: ticket.standing, use: use?.use };
}

function recordClient(action: ActionEnvelope): ClientIdentity {
  const { address, name, version } = action.client;
  return { address, name, version };
}

function recordPrincipal(action: ActionEnvelope): RecordedPrincipal {
  const { id, keyId, role } = action.principal;
  return { id, key_id: keyId, role };
}

function recordEvaluation(evaluation: Evaluation): RecordedEvaluation {
  return {
    by_default: evaluation.byDefault,
    decision: evaluation.decision,
    duration_us: integer("durationUs", evaluation.durationUs),
    errors: evaluation.verdicts.filter((verdict) => verdict.error !== undefined).map((verdict) => verdict.policy.name),
    id: evaluation.id,
    policies: evaluation.verdicts.map(recordPolicy),
    risk: integer("risk", evaluation.risk),
    rules: evaluation.determining.map((finding) => finding.rule),
    shadow: evaluation.shadow.map(recordPolicy),
    would_have: recordTrials(evaluation),
  };
}

function recordTrials(evaluation: Evaluation): readonly RecordedShadowDecision[] | undefined {
  const found = shadowDecisions(evaluation);
  return found.length === 0 ? undefined : found.map(({ decision, rule }) => ({ decision, rule }));
}

function recordPolicy(verdict: PolicyVerdict): RecordedPolicy {
  const { digest, kind, name, signer, version } = verdict.policy;
  return {
    digest,
    duration_us: integer("durationUs", verdict.durationUs),
    kind,
    name,
    redactions: recordRedactions(verdict.redactions),
    signer,
    verdict: verdict.decision,
    version,
  };
}

function recordRedactions(redactions: PolicyVerdict["redactions"]): RecordedRedaction[] | undefined {
  if (redactions === undefined) return undefined;
  const counts = new Map<string, number>();
  for (const { rule } of redactions) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return Array.from(counts, ([rule, count]) => ({ count, rule }));
}

/** Throws TypeError where a value holds a number that is not an integer below 2^53. */
export function checkIntegers(value: Json): void {
  if (typeof value === "number") integer("detail", value);
  if (typeof value === "object" && value !== null) Object.values(value).forEach(checkIntegers);
}

/** Two languages do not print the same fraction alike; a record holds none. */
function integer(field: string, value: number): number {
  if (!Number.isSafeInteger(value))
    throw new TypeError(`evidence: expected \`${field}\` to be an integer, got ${value}`);
  return value;
}
