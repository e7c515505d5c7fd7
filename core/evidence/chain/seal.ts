import { canonicalJson, sha256Hex } from "../../action/canonical-json.ts";
import type { TicketUse } from "../../action/capability-ticket.ts";
import type { ActionEnvelope, ClientIdentity, Outcome } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import { type Evaluation, type PolicyVerdict, shadowDecisions } from "../../action/evaluation.ts";
import { type Clock, type Random, timeText, uuidV7 } from "../../action/id.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { SessionScope } from "../../action/principal.ts";
import { durably, type EvidenceStore, epochKey } from "../record/key-space.ts";
import {
  type ActionKind,
  type ActionRecord,
  type Effect,
  type EventKind,
  type EventRecord,
  type EvidenceRecord,
  type RecordedAction,
  type RecordedApproval,
  type RecordedEvaluation,
  type RecordedFacts,
  type RecordedPolicy,
  type RecordedPrincipal,
  type RecordedRedaction,
  type RecordedSession,
  type RecordedTicket,
  type RecordWriter,
  recordSchema,
} from "../record/record.ts";
import type { ChainHead } from "./chain-walk.ts";

/** A record with its exact bytes and their digest. */
export interface Sealed<R extends EvidenceRecord = EvidenceRecord> {
  readonly record: R;
  readonly text: string;
  /** SHA-256 (hex) of the text. */
  readonly hash: string;
}

/** The chain that a record is appended to, and its last record. */
interface AppendedChain {
  readonly tenant: string;
  readonly id: string;
  readonly head: ChainHead;
}

/** The members that every record of this process has in common, and the sources of its time and salt. */
export interface Stamp {
  readonly clock: Clock;
  readonly random: Random;
  readonly writer: RecordWriter;
  readonly configDigest: string;
}

const saltBytes = 16;
const idBytes = 10;
const maxReason = 1_024;

// INVARIANT: the members of every literal below are in RFC 8785 order; `sealActionRecord` relies on it.

/**
 * Makes the record of a step of an action that follows the head of the chain. Its text is RFC 8785 JSON. As its members are in
 * that order, the engine's own serialiser, several times faster, is canonical; a property test compares the two.
 */
export function sealActionRecord(
  content: ActionContent,
  { tenant, id: chain, head }: AppendedChain,
  session: RecordedSession,
  stamp: Stamp,
): Sealed<ActionRecord> {
  const { id, salt, time } = drawIdentity(stamp);
  const record: ActionRecord = {
    action: content.action,
    approval: content.approval,
    chain,
    client: content.client,
    config_digest: stamp.configDigest,
    effect: content.effect,
    evaluation: content.evaluation,
    id,
    kind: content.kind,
    prev_hash: head.hash,
    principal: content.principal,
    reason: content.reason,
    salt,
    schema: recordSchema,
    seq: head.seq + 1,
    session,
    tenant,
    ticket: content.ticket,
    time,
    writer: stamp.writer,
  };
  const json = JSON.stringify(record);
  // A lone surrogate comes out as an escape, which RFC 8785 refuses; so does the harmless text `\ud`.
  const text = json.includes("\\ud") ? canonicalJson(JSON.parse(json) as Json) : json;
  return { record, text, hash: sha256Hex(text) };
}

/** Makes the record of an event that follows the head of the chain. */
export function sealEventRecord(
  content: EventContent,
  { tenant, id: chain, head }: AppendedChain,
  stamp: Stamp,
): Sealed {
  const { id, salt, time } = drawIdentity(stamp);
  const record: EventRecord = {
    chain,
    config_digest: stamp.configDigest,
    detail: content.detail,
    id,
    kind: content.kind,
    prev_hash: head.hash,
    salt,
    schema: recordSchema,
    seq: head.seq + 1,
    tenant,
    time,
    writer: stamp.writer,
  };
  const text = canonicalJson(record as unknown as Json);
  return { record, text, hash: sha256Hex(text) };
}

function drawIdentity({ clock, random }: Stamp): { readonly id: string; readonly salt: string; readonly time: string } {
  const now = clock();
  const bytes = random(idBytes + saltBytes);
  return {
    id: uuidV7(now, bytes),
    salt: Buffer.from(bytes.buffer, bytes.byteOffset + idBytes, saltBytes).toString("base64url"),
    time: timeText(now),
  };
}

/** The content of an action's record, before it has a place in a chain and in a session. */
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

/** Commitments that an outcome repeats of its decision. */
export interface ActionCommitments {
  readonly fingerprint: string;
  readonly argumentsDigest: string;
  readonly facts: RecordedFacts | undefined;
}

export function decisionContent(
  action: ActionEnvelope,
  evaluation: Evaluation,
  commitments: ActionCommitments,
  approval?: RecordedApproval,
  use?: TicketUse,
): ActionContent {
  const { ticket } = action;
  const dispatched = evaluation.decision === "allow" || approval?.state === "consumed";
  return {
    ...attemptContent(action, commitments, undefined),
    kind: "decision",
    approval: approval && {
      fingerprint: approval.fingerprint,
      id: approval.id,
      reviewer: approval.reviewer,
      state: approval.state,
    },
    effect: dispatched ? "dispatched" : "not_dispatched",
    evaluation: recordEvaluation(evaluation),
    reason: undefined,
    ticket: ticket && { id: ticket.id ?? undefined, of: use?.of, standing: ticket.standing, use: use?.use },
  };
}

/** `evaluation` is that of the output, `outputDigest` the commitment to it; undefined where there was no output. */
export function outcomeContent(
  action: ActionEnvelope,
  outcome: Outcome,
  evaluation: RecordedEvaluation | undefined,
  commitments: ActionCommitments,
  outputDigest: string | undefined,
): ActionContent {
  return {
    ...attemptContent(action, commitments, outputDigest),
    kind: "outcome",
    approval: undefined,
    effect: outcome.status,
    evaluation,
    reason: outcome.status === "unknown" ? outcome.reason.slice(0, maxReason).toWellFormed() : undefined,
    ticket: undefined,
  };
}

/** The outcome of a decision whose own outcome can no longer be known. */
export function unknownOutcomeContent(decision: ActionRecord, reason: string): ActionContent {
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

/** The content that every record of an action has: what was attempted, and by whom. */
function attemptContent(
  action: ActionEnvelope,
  commitments: ActionCommitments,
  outputDigest: string | undefined,
): Pick<ActionContent, "action" | "client" | "principal" | "session"> {
  const { client, principal, session } = action;
  return {
    action: {
      arguments_digest: commitments.argumentsDigest,
      capability: action.capability,
      facts: commitments.facts,
      fingerprint: commitments.fingerprint,
      id: action.id,
      output_digest: outputDigest,
      phase: action.phase,
      protocol: action.protocol,
      target: action.target,
      task: action.task,
      tool: action.tool,
      tool_definition: action.tool_definition?.digest,
    },
    client: { address: client.address, name: client.name, version: client.version },
    principal: { id: principal.id, key_id: principal.keyId, role: principal.role },
    session,
  };
}

/** The evaluation as records hold it. Throws TypeError for a number that is not an integer. */
export function recordEvaluation(evaluation: Evaluation): RecordedEvaluation {
  const wouldHave = shadowDecisions(evaluation);
  const errors: string[] = [];
  for (const { error, policy } of evaluation.verdicts) if (error !== undefined) errors.push(policy.name);
  const rules: string[] = [];
  for (const { rule } of evaluation.determining) rules.push(rule);
  return {
    by_default: evaluation.byDefault,
    decision: evaluation.decision,
    duration_us: integer("durationUs", evaluation.durationUs),
    errors,
    id: evaluation.id,
    policies: evaluation.verdicts.map(recordPolicy),
    risk: integer("risk", evaluation.risk),
    rules,
    shadow: evaluation.shadow.map(recordPolicy),
    would_have: wouldHave.length === 0 ? undefined : wouldHave.map(({ decision, rule }) => ({ decision, rule })),
  };
}

function recordPolicy(verdict: PolicyVerdict): RecordedPolicy {
  const { policy, redactions } = verdict;
  return {
    answer_digest: verdict.answerDigest,
    digest: policy.digest,
    duration_us: integer("durationUs", verdict.durationUs),
    kind: policy.kind,
    name: policy.name,
    redactions: redactions && countRedactions(redactions),
    replayable: verdict.replayable,
    signer: policy.signer,
    verdict: verdict.decision,
    version: policy.version,
  };
}

function countRedactions(redactions: NonNullable<PolicyVerdict["redactions"]>): RecordedRedaction[] {
  const counts = new Map<string, number>();
  for (const { rule } of redactions) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return Array.from(counts, ([rule, count]) => ({ count, rule }));
}

/** Throws TypeError where a value holds a number that is not an integer below 2^53. */
export function checkIntegers(value: Json): void {
  if (typeof value === "number") integer("detail", value);
  if (typeof value === "object" && value !== null) Object.values(value).forEach(checkIntegers);
}

/** Two languages do not print the same fraction alike, so a record holds none. */
function integer(field: string, value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new TypeError(`evidence: expected \`${field}\` to be an integer, got ${value}`);
}

/** Increments the writer epoch of the store. The new epoch is on disk before any record carries it. */
export async function advanceEpoch(store: EvidenceStore): Promise<number> {
  const epoch = Number((await store.get(epochKey)) ?? 0) + 1;
  if (!Number.isSafeInteger(epoch)) throw new GatewayError("STATE_UNUSABLE", "expected `epoch` to be a number");
  await store.put(epochKey, String(epoch), durably);
  return epoch;
}
