import { type Decision, isDecision } from "../../action/decision.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import {
  defaultRisk,
  defaultSeverity,
  type Finding,
  maxApprovals,
  severities,
  type Verdict,
} from "../../action/policy.ts";
import { parseStrictJson } from "../../action/strict-json.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import { EngineError } from "../engine-fault.ts";

const bounds = { depth: 8, nodes: 4_096, stringLength: 1_024, reader: "exact" } as const;
const maxReasons = 256;
const maxMessage = 512;
const idPattern = /^[a-z0-9][a-z0-9-]{0,63}$/;

/**
 * Reads OPA's result set. `true` allows; `false` and an empty set, which is an undefined entrypoint, block by the rule
 * `<name>.not-permitted`; `{decision, reasons?}` is a decision with one finding for each reason, or one of its own where there
 * is none. Anything else throws EngineError.
 */
export function readRegoAnswer(answer: Uint8Array, name: string): Verdict {
  const results = parse(answer);
  if (!Array.isArray(results) || results.length > 1) throw malformed("one result");
  const [row] = results as readonly Json[];
  const refused = [ownReason("block", `no policy of \`${name}\` permits this`)];
  if (row === undefined) return verdictOf("block", refused, name);
  if (!isJsonObject(row) || !hasOnly(row, ["result"])) throw malformed("one result");
  const { result } = row;
  if (result === true) return verdictOf("allow", [], name);
  if (result === false) return verdictOf("block", refused, name);
  if (!isJsonObject(result) || !hasOnly(result, ["decision", "reasons"]))
    throw malformed("true, false, or an object of `decision` and `reasons`");
  const { decision, reasons = [] } = result;
  if (!isDecision(decision)) throw malformed("`decision` to be allow, review or block");
  if (!Array.isArray(reasons) || reasons.length > maxReasons) throw malformed(`at most ${maxReasons} reasons`);
  const read = reasons.map((reason: Json) => readReason(reason, decision));
  if (read.length === 0 && decision !== "allow") read.push(ownReason(decision, `\`${name}\` decides ${decision}`));
  return verdictOf(decision, read, name);
}

interface Reason extends Pick<Finding, "message" | "severity" | "decision" | "approvals"> {
  readonly id: string;
}

function readReason(value: Json, decision: Decision): Reason {
  if (!isJsonObject(value) || !hasOnly(value, ["id", "message", "severity", "approvals"]))
    throw malformed("reasons of `id`, `message`, `severity` and `approvals`");
  const { id, message, severity = defaultSeverity[decision], approvals } = value;
  if (typeof id !== "string" || !idPattern.test(id)) throw malformed("`id` of a reason to be a word in lower case");
  if (typeof message !== "string" || message === "" || message.length > maxMessage || escapeHidden(message) !== message)
    throw malformed(`printable messages of at most ${maxMessage} characters`);
  const known = severities.find((each) => each === severity);
  if (known === undefined) throw malformed(`\`severity\` to be one of ${severities.join(", ")}`);
  const reason = { id, message, severity: known, decision };
  if (approvals === undefined) return reason;
  const isCount = typeof approvals === "number" && Number.isInteger(approvals);
  if (decision !== "review" || !isCount || approvals < 1 || approvals > maxApprovals)
    throw malformed(`\`approvals\` of a review to be from 1 to ${maxApprovals}`);
  return { ...reason, approvals };
}

/** The reason of a decision that comes without one. */
function ownReason(decision: "block" | "review", message: string): Reason {
  const id = decision === "block" ? "not-permitted" : "review";
  return { id, message, severity: defaultSeverity[decision], decision };
}

function verdictOf(decision: Decision, reasons: readonly Reason[], name: string): Verdict {
  const findings = reasons.map(({ id, ...rest }): Finding => {
    return Object.freeze({ rule: `${name}.${id}`, ...rest, risk: defaultRisk[rest.severity], mode: "enforce" });
  });
  const risk = findings.reduce((most, finding) => Math.max(most, finding.risk), 0);
  return Object.freeze({ decision, findings: Object.freeze(findings), risk });
}

function parse(answer: Uint8Array): Json {
  try {
    return parseStrictJson(answer, bounds);
  } catch (error) {
    if (error instanceof GatewayError) throw malformed("strict JSON");
    throw error;
  }
}

function hasOnly(value: JsonObject, members: readonly string[]): boolean {
  return Object.keys(value).every((key) => members.includes(key));
}

function malformed(expected: string): EngineError {
  return new EngineError("answer", `expected ${expected} as the answer of the entrypoint`);
}
