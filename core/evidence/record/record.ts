import type { ActionEffect } from "../../action/action-fact.ts";
import type { Capability } from "../../action/capability.ts";
import type { TicketStanding } from "../../action/capability-ticket.ts";
import type { Decision } from "../../action/decision.ts";
import type { ClientIdentity, Phase, Protocol } from "../../action/envelope.ts";
import type { JsonObject } from "../../action/json.ts";
import type { PolicyRef } from "../../action/policy.ts";
import type { SessionScope } from "../../action/principal.ts";
import type { Role } from "../../action/role.ts";

/** The name of this shape. A reader refuses any other. */
export const recordSchema = "evidence-record-v1";

export const eventKinds = [
  "genesis",
  "approval",
  "extension",
  "configuration",
  "key",
  "session",
  "ticket",
  "admin",
  "redaction",
  "retention",
  "heartbeat",
  "clock",
] as const;
export type EventKind = (typeof eventKinds)[number];

export const actionKinds = ["decision", "outcome"] as const;
export type ActionKind = (typeof actionKinds)[number];

type RecordKind = ActionKind | EventKind;

/** The effect of an action: `dispatched` is written before the upstream is called, the last three after. */
export const effects = ["not_dispatched", "dispatched", "success", "error", "unknown"] as const;
export type Effect = (typeof effects)[number];

/** The members every record has. All numbers are integers below 2^53. */
interface RecordFrame {
  /** Random name of the chain, fixed by its genesis record. */
  readonly chain: string;
  /** `sha256:<hex>` of the configuration in force. */
  readonly config_digest: string;
  /** UUIDv7 of this record. */
  readonly id: string;
  readonly kind: RecordKind;
  /** SHA-256 (hex) of the bytes of the record before; 64 zeros in the genesis record. */
  readonly prev_hash: string;
  /** 16 random bytes, base64url: a record cannot be guessed from its digest. */
  readonly salt: string;
  readonly schema: typeof recordSchema;
  /** Position in the chain; the genesis record is 0. */
  readonly seq: number;
  readonly tenant: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  /** The process that wrote it; the epoch grows with every start. */
  readonly writer: RecordWriter;
}

export interface RecordWriter {
  readonly epoch: number;
  readonly id: string;
}

/** A step of one action: the decision about it, or what came of it. */
export interface ActionRecord extends RecordFrame {
  readonly kind: ActionKind;
  readonly action: RecordedAction;
  readonly approval?: RecordedApproval | undefined;
  readonly client: ClientIdentity;
  readonly effect: Effect;
  /** In a decision: its evaluation. In an outcome: the evaluation of the output, where there was one. */
  readonly evaluation?: RecordedEvaluation | undefined;
  readonly principal: RecordedPrincipal;
  /** The reason of the effect `unknown`. */
  readonly reason?: string | undefined;
  readonly session: RecordedSession;
  /** The capability ticket that came with a decision's action. */
  readonly ticket?: RecordedTicket | undefined;
  readonly trace?: RecordedTrace | undefined;
}

/** Something that happened to the gateway or to a tenant, apart from any action. */
export interface EventRecord extends RecordFrame {
  readonly kind: EventKind;
  readonly detail: JsonObject;
}

/** One leaf of a tenant's chain, `evidence-record-v1`. Its bytes are its RFC 8785 JSON. */
export type EvidenceRecord = ActionRecord | EventRecord;

export interface RecordedAction {
  /** Commitment to the arguments, field by field: see `fieldsDigest`. */
  readonly arguments_digest: string;
  readonly capability: Capability;
  /** Present where a parser read the arguments: a shell line, SQL, git, URLs, paths or addresses. */
  readonly facts?: RecordedFacts | undefined;
  /** Commitment to what an approval of this action is bound to: see `WrappingKey.commitFingerprint`. */
  readonly fingerprint: string;
  /** The envelope's id; it ties an outcome to its decision. */
  readonly id: string;
  /** Commitment to the upstream's answer; in outcomes `success` and `error`. */
  readonly output_digest?: string | undefined;
  readonly phase: Phase;
  readonly protocol: Protocol;
  readonly target: string;
  readonly task: string | null;
  readonly tool: string;
  /** Digest of the tool's definition as the upstream published it. */
  readonly tool_definition?: string | undefined;
}

/** The facts of an action: in clear only the word that rules match, which discloses no host, path or text. */
export interface RecordedFacts {
  /** Commitment to the facts, member by member but for `effect`: see `fieldsDigest`. */
  readonly digest: string;
  readonly effect: ActionEffect;
}

export interface RecordedPrincipal {
  readonly id: string;
  readonly key_id: string;
  readonly role: Role;
}

/** The place of a record in its session; index and hash leave no gap. */
export interface RecordedSession {
  readonly id: string;
  readonly index: number;
  readonly label?: string | undefined;
  /** SHA-256 (hex) of the bytes of this session's record before; 64 zeros in its first. */
  readonly prev_hash: string;
  readonly transport: SessionScope["transport"];
}

export interface RecordedEvaluation {
  readonly by_default: boolean;
  readonly decision: Decision;
  readonly duration_us: number;
  /** Names of the policies that could not answer. Their texts may quote arguments and stay in the log. */
  readonly errors: readonly string[];
  readonly id: string;
  readonly policies: readonly RecordedPolicy[];
  readonly risk: number;
  /** The rules that made the decision. */
  readonly rules: readonly string[];
  readonly shadow: readonly RecordedPolicy[];
  /** Decisions of rules and policies in shadow mode that would have held or blocked; absent where there is none. At most 32. */
  readonly would_have?: readonly RecordedShadowDecision[] | undefined;
}

/** A decision that does not count, and the rule that would have made it. */
export interface RecordedShadowDecision {
  readonly decision: Decision;
  readonly rule: string;
}

export interface RecordedPolicy {
  /** `sha256:<hex>` over the bytes of the answer of another server; absent where none answered. */
  readonly answer_digest?: string | undefined;
  readonly digest: string;
  readonly duration_us: number;
  readonly kind: PolicyRef["kind"];
  readonly name: string;
  /** Its redactions of the output; absent where there is none. In `shadow`: those it would have made. */
  readonly redactions?: readonly RecordedRedaction[] | undefined;
  /** False where another server decides, so that the same action may get another verdict; else absent. */
  readonly replayable?: false | undefined;
  readonly signer: string | null;
  readonly verdict: Decision | "abstain";
  readonly version: string;
}

/** The number of places in the output that a rule redacted. Neither their content nor their position: that would disclose too much. */
export interface RecordedRedaction {
  readonly count: number;
  readonly rule: string;
}

export interface RecordedApproval {
  readonly fingerprint: string;
  readonly id: string;
  readonly reviewer: string | null;
  readonly state: string;
}

export interface RecordedTicket {
  /** Absent where no claim of the ticket can be trusted. */
  readonly id?: string | undefined;
  /** The number of uses it has; present with `use`. */
  readonly of?: number | undefined;
  readonly standing: TicketStanding;
  /** The number of the use that this decision spends; the first is 1. */
  readonly use?: number | undefined;
}

interface RecordedTrace {
  readonly span_id: string;
  readonly trace_id: string;
}

/** The predecessor's hash in the first record of a chain, and of a session. */
export const noHash: string = "0".repeat(64);
