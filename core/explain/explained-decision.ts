import type { TicketStanding } from "../action/capability-ticket.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope, Phase } from "../action/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../action/evaluation.ts";
import type { ExplainedRule } from "../action/explanation.ts";
import type { Finding, Mode, PolicyRef, Verdict } from "../action/policy.ts";
import type { ActionRecord, RecordedPolicy } from "../evidence/record/record.ts";

/** A decision to be explained, with what is kept of its action. */
export interface DecisionSubject {
  readonly source: ExplanationSource;
  readonly time: string;
  readonly evaluation: DescribedEvaluation;
  readonly summary: ExplainedAction;
  /** The action as evaluated; null where it is no longer kept. */
  readonly action: ActionEnvelope | null;
}

/** An evaluation, or the record of one. */
export interface DescribedEvaluation {
  readonly id: string;
  readonly phase: Phase;
  readonly decision: Decision;
  readonly byDefault: boolean;
  readonly risk: number;
  readonly rules: readonly string[];
  /** In the order of the chain, those in shadow mode last. */
  readonly verdicts: readonly DescribedVerdict[];
}

export interface DescribedVerdict {
  readonly policy: PolicyRef;
  readonly mode: Mode;
  readonly decision: Verdict["decision"];
  readonly error: string | null;
  /** Null where the record does not have them. */
  readonly findings: readonly Finding[] | null;
  readonly server: ServerMembers;
}

/** The part of a verdict that another server gave; empty for every other. */
export interface ServerMembers {
  /** False: asked again, the server may decide otherwise. */
  readonly replayable?: false;
  /** `sha256:<hex>` over the bytes of its answer; absent where there was none. */
  readonly answer_digest?: string;
}

export function serverMembers(replayable: false | undefined, digest: string | undefined): ServerMembers {
  return {
    ...(replayable === undefined ? {} : { replayable }),
    ...(digest === undefined ? {} : { answer_digest: digest }),
  };
}

/** A decision since the start. Outputs are not kept, so an output's evaluation has no action. */
export function subjectOf(source: ExplanationSource, action: ActionEnvelope, evaluation: Evaluation): DecisionSubject {
  const isWhole = evaluation.phase === action.phase && (action.phase !== "output" || action.output !== undefined);
  const described: DescribedEvaluation = {
    id: evaluation.id,
    phase: evaluation.phase,
    decision: evaluation.decision,
    byDefault: evaluation.byDefault,
    risk: evaluation.risk,
    rules: evaluation.determining.map(({ rule }) => rule),
    verdicts: [
      ...evaluation.verdicts.map((verdict) => describeVerdict(verdict, "enforce")),
      ...evaluation.shadow.map((verdict) => describeVerdict(verdict, "shadow")),
    ],
  };
  return {
    source,
    time: action.time,
    evaluation: described,
    summary: summarize(action),
    action: isWhole ? action : null,
  };
}

function describeVerdict(
  { policy, decision, error, findings, replayable, answerDigest }: PolicyVerdict,
  mode: Mode,
): DescribedVerdict {
  const server = serverMembers(replayable, answerDigest);
  return { policy, mode, decision, error: error ?? null, findings, server };
}

/**
 * A recorded decision; undefined for a record without an evaluation. `held` is the action itself, where it is pending
 * approval.
 */
export function recordedSubject(record: ActionRecord, held: ActionEnvelope | undefined): DecisionSubject | undefined {
  const { evaluation, action, time, kind } = record;
  if (evaluation === undefined) return undefined;
  const described: DescribedEvaluation = {
    id: evaluation.id,
    phase: kind === "outcome" ? "output" : action.phase,
    decision: evaluation.decision,
    byDefault: evaluation.by_default,
    risk: evaluation.risk,
    rules: evaluation.rules,
    verdicts: [
      ...evaluation.policies.map((each) => recordedVerdict(each, "enforce", evaluation.errors)),
      ...evaluation.shadow.map((each) => recordedVerdict(each, "shadow", [])),
    ],
  };
  const whole = kind === "decision" ? held : undefined;
  const summary = whole === undefined ? summarizeRecord(record) : summarize(whole);
  return {
    source: whole === undefined ? "evidence" : "approval",
    time,
    evaluation: described,
    summary,
    action: whole ?? null,
  };
}

function recordedVerdict(
  { kind, name, version, digest, signer, verdict, replayable, answer_digest }: RecordedPolicy,
  mode: Mode,
  errors: readonly string[],
): DescribedVerdict {
  const error = errors.includes(name) ? "it could not answer; the evidence does not say why" : null;
  const server = serverMembers(replayable, answer_digest);
  return { policy: { kind, name, version, digest, signer }, mode, decision: verdict, error, findings: null, server };
}

function summarize(action: ActionEnvelope): ExplainedAction {
  const { id, protocol, tool, target, capability, task, principal, session, session_state: state, ticket } = action;
  return {
    ...{ id, protocol, tool, target, capability, task },
    principal: principal.keyId,
    session: session.id,
    session_state: state === undefined ? null : { risk: state.risk, actions: state.actions, taints: namesOf(state) },
    ticket: ticket === undefined ? null : { id: ticket.id, standing: ticket.standing },
  };
}

function namesOf({ taints }: NonNullable<ActionEnvelope["session_state"]>): readonly string[] {
  return taints.map(({ name }) => name);
}

function summarizeRecord({ action, principal, session, ticket }: ActionRecord): ExplainedAction {
  const { id, protocol, tool, target, capability, task } = action;
  return {
    ...{ id, protocol, tool, target, capability, task },
    principal: principal.key_id,
    session: session.id,
    session_state: null,
    ticket: ticket === undefined ? null : { id: ticket.id ?? null, standing: ticket.standing },
  };
}

/**
 * The source of the explained action. `request`: described by the caller. `memory`: decided recently by this process.
 * `approval`: pending approval or use. `evidence`: only its record is left.
 */
type ExplanationSource = "request" | "memory" | "approval" | "evidence";

/**
 * The visibility of values. `redacted`: without those that a policy would redact. `withheld`: none, because a policy
 * that redacts failed. `unavailable`: the action is no longer kept.
 */
export type ExplainedValues = "shown" | "redacted" | "withheld" | "unavailable";

/** The loaded policy compared with the one that gave the verdict. */
export type PolicyStatus = "same" | "changed" | "gone";

/** The explanation of a decision about an action. */
export interface Explanation {
  /** The decision's id. */
  readonly id: string;
  readonly time: string;
  readonly phase: Phase;
  readonly decision: Decision;
  readonly by_default: boolean;
  readonly risk: number;
  /** The rules that made the decision. */
  readonly rules: readonly string[];
  /** One sentence, safe for a terminal. */
  readonly why: string;
  readonly source: ExplanationSource;
  readonly values: ExplainedValues;
  readonly action: ExplainedAction;
  /** The words for what the action does, by its typed facts; empty where none are kept or values are hidden. */
  readonly does: readonly string[];
  /** In the order of the chain, those in shadow mode last. The strictest enforced one that does not abstain decides. */
  readonly policies: readonly ExplainedPolicy[];
  /** The nearest rules, of all packs, that did not decide; nearest first. */
  readonly near: readonly NearMiss[];
  /** Limits of this explanation. */
  readonly notes: readonly string[];
}

/** The description of the action. */
export interface ExplainedAction
  extends Pick<ActionEnvelope, "id" | "protocol" | "tool" | "target" | "capability" | "task"> {
  readonly principal: string;
  readonly session: string;
  /** The state of its session; null where unknown. */
  readonly session_state: {
    readonly risk: number;
    readonly actions: number;
    readonly taints: readonly string[];
  } | null;
  readonly ticket: { readonly id: string | null; readonly standing: TicketStanding } | null;
}

export interface ExplainedPolicy extends ServerMembers {
  readonly policy: PolicyRef;
  readonly mode: Mode;
  readonly verdict: Verdict["decision"];
  /** True where this verdict equals the decision; several may. */
  readonly decided: boolean;
  /** The reason why it failed. */
  readonly error: string | null;
  readonly standing: PolicyStatus;
  readonly findings: readonly ExplainedFinding[];
  /** Its rules with findings, where the policy has readable rules and is unchanged. */
  readonly rules: readonly ExplainedRule[];
}

/** `message` is null where it is not kept, or may contain what a policy would redact. */
export interface ExplainedFinding extends Pick<Finding, "rule" | "decision" | "severity" | "mode" | "pointer"> {
  readonly message: string | null;
}

export interface NearMiss extends ExplainedRule {
  readonly policy: string;
}
