/** The severity of a reason. Each is one verdict, but for `warning`, which changes none. */
type Grade = "invalid" | "diverged" | "incomplete" | "stale" | "warning";

interface ReasonRow {
  readonly grade: Grade;
  readonly text: string;
}

const table = {
  malformed: { grade: "invalid", text: "the bytes are not what the format says: lines, JSON or its depth" },
  not_canonical: { grade: "invalid", text: "the JSON is not in the one form RFC 8785 gives it" },
  bad_schema: { grade: "invalid", text: "a member is missing, added, or of another type than the schema says" },
  missing_file: { grade: "incomplete", text: "a data folder lacks a file that belongs to the chain" },
  missing_record: { grade: "incomplete", text: "the chain's first record is not in the bundle" },
  foreign_tenant: { grade: "invalid", text: "the record belongs to another tenant" },
  foreign_chain: { grade: "invalid", text: "the record or note belongs to another chain" },
  foreign_session: { grade: "invalid", text: "the action belongs to another session" },
  seq_gap: {
    grade: "invalid",
    text: "the record's number does not come after the one before, or lies beyond the tree",
  },
  unknown_key: { grade: "invalid", text: "the key is not one that is trusted, or that the chain introduced" },
  bad_rotation: { grade: "invalid", text: "the change of keys is not signed by the old and the new key" },
  key_out_of_range: { grade: "invalid", text: "the key was not valid at that size of the chain" },
  bad_signature: { grade: "invalid", text: "the signature does not fit, or a signature is missing" },
  bad_checkpoint: { grade: "invalid", text: "the note is not a checkpoint of this chain" },
  bad_inclusion: { grade: "invalid", text: "the proof does not lead from the record to the checkpoint" },
  head_mismatch: { grade: "invalid", text: "the checkpoint's head is not the last record of its tree" },
  bad_prev_hash: { grade: "invalid", text: "the record does not name the digest of the record before" },
  stale_epoch: { grade: "invalid", text: "a writer wrote after its successor had begun" },
  bad_session_link: { grade: "invalid", text: "the record does not follow the session's record before" },
  session_gap: { grade: "incomplete", text: "records of the session are missing" },
  dispatch_without_allow: {
    grade: "invalid",
    text: "the action was dispatched though it was neither allowed nor approved",
  },
  second_decision: { grade: "invalid", text: "one action was decided about twice" },
  outcome_without_decision: { grade: "invalid", text: "there is an outcome of an action nobody decided about" },
  outcome_after_block: { grade: "invalid", text: "there is an outcome of an action that was not dispatched" },
  outcome_mismatch: { grade: "invalid", text: "the outcome is of another action than its decision" },
  second_outcome: { grade: "invalid", text: "one action has two outcomes" },
  open_outcome: { grade: "incomplete", text: "a dispatched action has no outcome in the bundle" },
  approval_mismatch: { grade: "invalid", text: "the approval was not given, or for another action" },
  approval_consumed_twice: { grade: "invalid", text: "one approval let two actions pass" },
  allow_after_kill: {
    grade: "invalid",
    text: "the action was dispatched while its session, principal, tenant or gateway was stopped",
  },
  ticket_misused: {
    grade: "invalid",
    text: "a capability ticket was used twice at once, too often, or after it was revoked",
  },
  bad_disclosure: { grade: "invalid", text: "the disclosed fields are not those the record commits to" },
  bad_consistency: { grade: "invalid", text: "the proof does not lead from the witness's note to the checkpoint" },
  bad_state: {
    grade: "invalid",
    text: "the proof does not lead from the session or its principal to the chain's state",
  },
  behind_witness: { grade: "diverged", text: "the bundle ends before what the witness had seen when it was made" },
  forked: { grade: "diverged", text: "the witness has seen another history of this chain" },
  state_missing: {
    grade: "incomplete",
    text: "the checkpoint, or the witness's, names a state of the chain that the bundle does not show",
  },
  tail_missing: { grade: "incomplete", text: "the session's last records are missing" },
  stop_missing: {
    grade: "incomplete",
    text: "a stop or release of the session, its principal, the tenant or the gateway is missing",
  },
  configuration_missing: { grade: "incomplete", text: "the record of a configuration is missing" },
  extension_missing: { grade: "incomplete", text: "the record of a pack, plugin or engine is missing" },
  key_missing: { grade: "incomplete", text: "the record of a change of keys is missing" },
  redaction_missing: { grade: "incomplete", text: "the record of an erasure is missing" },
  retention_missing: { grade: "incomplete", text: "the record of a pruning is missing" },
  stale: { grade: "stale", text: "the checkpoint is older than asked for" },
  no_state: { grade: "warning", text: "the bundle is of a version that could not show whether records are missing" },
  foreign_witness: { grade: "warning", text: "the witness that was given has no note of this chain" },
  post_mortem_missing: { grade: "warning", text: "the gateway was overruled by break-glass, and nobody wrote why" },
  time_reversed: { grade: "warning", text: "the clock was set back before this record" },
} as const;

export type Reason = keyof typeof table;

/** The closed list of reasons that both verifiers give. Reasons never change meaning. */
export const reasons: Readonly<Record<Reason, ReasonRow>> = table;

/** Verdicts and the exit codes of both verifiers. */
export const exitCodes = {
  witnessed: 0,
  "self-attested": 10,
  stale: 20,
  diverged: 30,
  invalid: 40,
  incomplete: 50,
} as const;
export type EvidenceVerdict = keyof typeof exitCodes;

/** A fault of a chain: the reason, from the one closed list, and a sentence about this very place. */
export interface ChainFault {
  readonly reason: Reason;
  readonly fault: string;
}

export function chainFault(reason: Reason, text: string): ChainFault {
  return { reason, fault: text };
}

export function isChainFault<T extends object>(read: T | ChainFault): read is ChainFault {
  return "fault" in read;
}

export interface FirstBad {
  readonly seq: number;
  /** From the closed list. */
  readonly reason: Reason;
  readonly detail: string;
}
