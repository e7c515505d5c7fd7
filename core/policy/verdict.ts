import { isCovered } from "../action/capability-ticket.ts";
import { type Decision, isDecision, strictest } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import {
  type Finding,
  maxApprovals,
  maxTaints,
  modes,
  type Redaction,
  severities,
  type Verdict,
} from "../action/policy.ts";
import { findRedactionFault, maxRedactions, readRedaction } from "../action/redaction.ts";
import { isTaint } from "../action/session-state.ts";

const maxFindings = 10_000;
const maxError = 2_048;

/** The findings that made a decision what it is. */
export function determiningFindings(findings: readonly Finding[], decision: Verdict["decision"]): readonly Finding[] {
  return findings.filter((finding) => finding.mode !== "shadow" && finding.decision === decision);
}

/** How many reviewers must approve what these findings determined: the most any of them asks, and never 0. */
export function requiredApprovals(determining: readonly Finding[]): number {
  return determining.reduce((most, { approvals = 1 }) => Math.max(most, approvals), 1);
}

/**
 * A policy's answer about an action as a frozen Verdict of our own making, or what is wrong with it. An answer that
 * contradicts itself (`allow` over an enforced finding that blocks) is wrong too, and so is one whose redactions cannot
 * be applied to the output of this very action.
 */
export function readVerdict(answer: unknown, action: ActionEnvelope): Verdict | string {
  if (!isRecord(answer)) return "expected a verdict, got none";
  const { decision, findings, risk, error } = answer;
  if (decision !== "abstain" && !isDecision(decision)) return "unknown decision";
  if (!isRisk(risk)) return "expected `risk` from 0 to 100";
  if (!Array.isArray(findings) || findings.length > maxFindings) return "expected `findings` to be a list";
  if (error !== undefined && typeof error !== "string") return "expected `error` to be a text";
  const read: Finding[] = [];
  for (const each of findings as unknown[]) {
    const finding = readFinding(each, action);
    if (finding === undefined) return "malformed finding";
    read.push(finding);
  }
  if (error !== undefined && decision !== "block") return "an error without `block`";
  if (read.some((each) => each.mode === "enforce" && isStricter(each, decision))) {
    return "a finding is stricter than the decision";
  }
  const redactions = readRedactions(answer.redactions, action);
  if (typeof redactions === "string") return redactions;
  return Object.freeze({
    decision,
    findings: Object.freeze(read),
    risk,
    ...(redactions.length === 0 ? {} : { redactions }),
    ...(error === undefined ? {} : { error: error.slice(0, maxError) }),
  });
}

function readRedactions(value: unknown, { phase, output }: ActionEnvelope): readonly Redaction[] | string {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > maxRedactions) return "expected `redactions` to be a list";
  if (phase !== "output" || output === undefined) return "expected `redactions` in phase `output` only";
  const read: Redaction[] = [];
  for (const each of value as unknown[]) {
    const redaction = readRedaction(each);
    if (typeof redaction === "string") return `expected ${redaction}`;
    read.push(redaction);
  }
  return findRedactionFault(output, read) ?? Object.freeze(read);
}

function isStricter(finding: Finding, decision: Verdict["decision"]): boolean {
  // A policy that abstains may say what it saw: such a finding permits nothing.
  if (decision === "abstain") return finding.decision !== "allow";
  return strictest(finding.decision, decision) !== decision;
}

function readFinding(value: unknown, action: ActionEnvelope): Finding | undefined {
  if (!isRecord(value)) return undefined;
  const { rule, decision, message, severity, risk, mode } = value;
  if (typeof rule !== "string" || typeof message !== "string" || !isDecision(decision) || !isRisk(risk))
    return undefined;
  const known = severities.find((each) => each === severity);
  const counted = modes.find((each) => each === mode);
  if (known === undefined || counted === undefined) return undefined;
  if (!areExtrasSound(value, decision, action)) return undefined;
  return Object.freeze({
    rule,
    decision,
    message,
    severity: known,
    risk,
    mode: counted,
    ...extrasOf(value as Extras),
  });
}

type Extras = Pick<Finding, "pointer" | "approvals" | "session_risk" | "taints" | "ticket">;

function areExtrasSound(
  { pointer, approvals, session_risk, taints, ticket }: Readonly<Record<string, unknown>>,
  decision: Decision,
  { ticket: presented }: ActionEnvelope,
): boolean {
  return (
    (pointer === undefined || typeof pointer === "string") &&
    (approvals === undefined || (decision === "review" && isApprovals(approvals))) &&
    (session_risk === undefined || isRisk(session_risk)) &&
    (taints === undefined || areTaints(taints)) &&
    (ticket === undefined || (isCovered(presented) && presented.id === ticket))
  );
}

function extrasOf({ pointer, approvals, session_risk, taints, ticket }: Extras): Extras {
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

function isRisk(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 100;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
