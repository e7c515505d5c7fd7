import type { Decision } from "../action/decision.ts";
import { defaultRisk, defaultSeverity, type Finding, type Verdict } from "../action/policy.ts";

/** A reason for which an engine decided: its own rule, and the message. */
export interface EngineReason extends Pick<Finding, "message" | "severity" | "decision" | "approvals"> {
  /** The last part of the rule's id. */
  readonly id: string;
}

/** The last part of the rule that blocks where no policy permits. */
export const defaultRule = "not-permitted";

/** The form of a rule's last part. */
export const reasonIdPattern: RegExp = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Characters of one message. */
export const maxReasonMessage = 512;

/** Returns the verdict of the engine `name` with a finding for each reason. */
export function verdictOf(decision: Decision, reasons: readonly EngineReason[], name: string): Verdict {
  const findings = reasons.map(({ id, ...rest }): Finding => {
    return Object.freeze({ rule: `${name}.${id}`, ...rest, risk: defaultRisk[rest.severity], mode: "enforce" });
  });
  const risk = findings.reduce((most, finding) => Math.max(most, finding.risk), 0);
  return Object.freeze({ decision, findings: Object.freeze(findings), risk });
}

/** The verdict where no policy permits the action. */
export function notPermitted(name: string, message = `no policy of \`${name}\` permits this`): Verdict {
  const reason: EngineReason = { id: defaultRule, message, severity: defaultSeverity.block, decision: "block" };
  return verdictOf("block", [reason], name);
}
