import { isCovered } from "../action/capability-ticket.ts";
import { type Decision, isDecision, strictest } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import {
  type Finding,
  type Mode,
  maxApprovals,
  maxTaints,
  modes,
  type PolicyRef,
  type Redaction,
  type Severity,
  severities,
  type Verdict,
} from "../action/policy.ts";
import { findRedactionFault, maxRedactions, readRedaction } from "../action/redaction.ts";
import { isTaint } from "../action/session-state.ts";

const maxFindings = 10_000;
const maxErrorLength = 2_048;
const digestPattern = /^sha256:[0-9a-f]{64}$/;

interface Determining {
  readonly determining: readonly Finding[];
  /** The number of reviewers who must approve: the highest that any of the findings requires, at least 1. */
  readonly approvals: number;
}

/** Finds the enforced findings whose decision is the given one; without a decision, none. */
export function findDetermining(findings: readonly Finding[], decision: Verdict["decision"] | undefined): Determining {
  const determining: Finding[] = [];
  let required = 1;
  for (const finding of findings) {
    if (finding.mode === "shadow" || finding.decision !== decision) continue;
    determining.push(finding);
    required = Math.max(required, finding.approvals ?? 1);
  }
  return { determining: Object.freeze(determining), approvals: required };
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Copies a policy's answer about an action into a frozen Verdict, or returns the reason why it is invalid. Invalid are
 * also an answer that contradicts itself (`allow` with an enforced finding that blocks) and one whose redactions do not
 * fit the output of this action.
 */
export function checkVerdict(answer: unknown, action: ActionEnvelope): Verdict | string {
  if (typeof answer !== "object" || answer === null) return "expected a verdict, got none";
  const { decision, findings, risk, error, redactions, answerDigest } = answer as Members;
  if (decision !== "abstain" && !isDecision(decision)) return "unknown decision";
  if (!isScore(risk)) return "expected `risk` from 0 to 100";
  if (!Array.isArray(findings) || findings.length > maxFindings) return "expected `findings` to be a list";
  if (error !== undefined && typeof error !== "string") return "expected `error` to be a text";
  // A policy that abstains may report findings that allow: they permit nothing.
  const limit = decision === "abstain" ? "allow" : decision;
  const copies: Finding[] = [];
  let isStricter = false;
  for (const each of findings as unknown[]) {
    const finding = checkFinding(each, action);
    if (finding === undefined) return "malformed finding";
    copies.push(finding);
    isStricter ||= finding.mode === "enforce" && strictest(finding.decision, limit) !== limit;
  }
  if (error !== undefined && decision !== "block") return "an error without `block`";
  if (isStricter) return "a finding is stricter than the decision";
  const verdict: Verdict = { decision, findings: Object.freeze(copies), risk };
  const isPlain = redactions === undefined && error === undefined && answerDigest === undefined;
  return isPlain ? Object.freeze(verdict) : completeVerdict(verdict, redactions, { error, answerDigest }, action);
}

function completeVerdict(
  verdict: Verdict,
  redactions: unknown,
  { error, answerDigest }: { readonly error: string | undefined; readonly answerDigest: unknown },
  action: ActionEnvelope,
): Verdict | string {
  const checked = redactions === undefined ? [] : checkRedactions(redactions, action);
  if (typeof checked === "string") return checked;
  const isDigest = typeof answerDigest === "string" && digestPattern.test(answerDigest);
  if (answerDigest !== undefined && !isDigest) return "expected `answerDigest` to be a digest";
  return Object.freeze({
    ...verdict,
    ...(checked.length === 0 ? {} : { redactions: checked }),
    ...(error === undefined ? {} : { error: error.slice(0, maxErrorLength) }),
    ...(isDigest ? { answerDigest } : {}),
  });
}

function checkRedactions(value: unknown, { phase, output }: ActionEnvelope): readonly Redaction[] | string {
  if (!Array.isArray(value) || value.length > maxRedactions) return "expected `redactions` to be a list";
  if (phase !== "output" || output === undefined) return "expected `redactions` in phase `output` only";
  const redactions: Redaction[] = [];
  for (const each of value as unknown[]) {
    const redaction = readRedaction(each);
    if (typeof redaction === "string") return `expected ${redaction}`;
    redactions.push(redaction);
  }
  return findRedactionFault(output, redactions) ?? Object.freeze(redactions);
}

function checkFinding(value: unknown, action: ActionEnvelope): Finding | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { rule, decision, message, severity, risk, mode, ...optional } = value as Members;
  if (typeof rule !== "string" || typeof message !== "string") return undefined;
  if (!isDecision(decision) || !isScore(risk)) return undefined;
  if (!severities.includes(severity as Severity) || !modes.includes(mode as Mode)) return undefined;
  const finding: Finding = { rule, decision, message, severity: severity as Severity, risk, mode: mode as Mode };
  if (Object.keys(optional).length === 0) return Object.freeze(finding);
  if (!areOptionalMembersValid(optional, decision, action)) return undefined;
  return Object.freeze({ ...finding, ...copyOptionalMembers(optional as OptionalMembers) });
}

type OptionalMembers = Pick<Finding, "pointer" | "approvals" | "session_risk" | "taints" | "ticket">;

function areOptionalMembersValid(
  { pointer, approvals, session_risk, taints, ticket }: Members,
  decision: Decision,
  { ticket: presented }: ActionEnvelope,
): boolean {
  return (
    (pointer === undefined || typeof pointer === "string") &&
    (approvals === undefined || (decision === "review" && isApprovals(approvals))) &&
    (session_risk === undefined || isScore(session_risk)) &&
    (taints === undefined || areTaints(taints)) &&
    (ticket === undefined || (isCovered(presented) && presented.id === ticket))
  );
}

/** Copies the known members; others are dropped. */
function copyOptionalMembers({ pointer, approvals, session_risk, taints, ticket }: OptionalMembers): OptionalMembers {
  return {
    ...(pointer === undefined ? {} : { pointer }),
    ...(approvals === undefined ? {} : { approvals }),
    ...(session_risk === undefined ? {} : { session_risk }),
    ...(taints === undefined ? {} : { taints: Object.freeze([...taints]) }),
    ...(ticket === undefined ? {} : { ticket }),
  };
}

function isApprovals(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= maxApprovals;
}

function areTaints(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= maxTaints &&
    value.every((taint) => typeof taint === "string" && isTaint(taint))
  );
}

/** A risk from 0 to 100. */
function isScore(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 100;
}

/** The rule named by the finding of a policy that failed. */
const policyErrorRule = "policy_error";

/** The verdict of a policy that could not answer; `advice` is for the agent. */
export function failedVerdict(ref: PolicyRef, reason: string, advice = ""): Verdict {
  const message = `policy \`${ref.name}\` could not answer, so the action is blocked${advice}`;
  const finding = {
    rule: policyErrorRule,
    decision: "block",
    message,
    severity: "high",
    risk: 0,
    mode: "enforce",
  } as const;
  return { decision: "block", findings: Object.freeze([Object.freeze(finding)]), risk: 0, error: reason };
}

/** An error as evidence and operators see it, at most 512 characters. */
export function describeError(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 512);
}
