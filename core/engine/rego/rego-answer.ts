import { type Decision, isDecision } from "../../action/decision.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { defaultSeverity, maxApprovals, severities, type Verdict } from "../../action/policy.ts";
import { parseStrictJson } from "../../action/strict-json.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import { EngineError } from "../engine-fault.ts";
import { type EngineReason, maxReasonMessage, notPermitted, reasonIdPattern, verdictOf } from "../engine-reason.ts";

const bounds = { depth: 8, nodes: 4_096, stringLength: 1_024, reader: "exact" } as const;
const maxReasons = 256;

/** Reads OPA's result set: the decision of its one result; an empty set, which is an undefined entrypoint, blocks. */
export function readRegoAnswer(answer: Uint8Array, name: string): Verdict {
  const results = parseEngineAnswer(answer);
  if (!Array.isArray(results) || results.length > 1) throw malformed("one result");
  const [row] = results as readonly Json[];
  if (row === undefined) return notPermitted(name);
  if (!isJsonObject(row) || !hasOnly(row, ["result"]) || row.result === undefined) throw malformed("one result");
  return readDecision(row.result, name);
}

/**
 * Reads the value of an entrypoint. `true` allows; `false` blocks by the rule `<name>.not-permitted`; `{decision, reasons?}` is
 * a decision with one finding for each reason, or one of its own where there is none. Anything else throws EngineError.
 */
export function readDecision(result: Json, name: string): Verdict {
  if (result === true) return verdictOf("allow", [], name);
  if (result === false) return notPermitted(name);
  if (!isJsonObject(result) || !hasOnly(result, ["decision", "reasons"]))
    throw malformed("true, false, or an object of `decision` and `reasons`");
  const { decision, reasons = [] } = result;
  if (!isDecision(decision)) throw malformed("`decision` to be allow, review or block");
  if (!Array.isArray(reasons) || reasons.length > maxReasons) throw malformed(`at most ${maxReasons} reasons`);
  const read = reasons.map((reason: Json) => readReason(reason, decision));
  if (read.length > 0 || decision === "allow") return verdictOf(decision, read, name);
  if (decision === "block") return notPermitted(name, `\`${name}\` decides block`);
  const message = `\`${name}\` decides review`;
  return verdictOf(decision, [{ id: "review", message, severity: defaultSeverity.review, decision }], name);
}

function readReason(value: Json, decision: Decision): EngineReason {
  if (!isJsonObject(value) || !hasOnly(value, ["id", "message", "severity", "approvals"]))
    throw malformed("reasons of `id`, `message`, `severity` and `approvals`");
  const { id, message, severity = defaultSeverity[decision], approvals } = value;
  if (typeof id !== "string" || !reasonIdPattern.test(id))
    throw malformed("`id` of a reason to be a word in lower case");
  if (
    typeof message !== "string" ||
    message === "" ||
    message.length > maxReasonMessage ||
    escapeHidden(message) !== message
  )
    throw malformed(`printable messages of at most ${maxReasonMessage} characters`);
  const known = severities.find((each) => each === severity);
  if (known === undefined) throw malformed(`\`severity\` to be one of ${severities.join(", ")}`);
  const reason = { id, message, severity: known, decision };
  if (approvals === undefined) return reason;
  const isCount = typeof approvals === "number" && Number.isInteger(approvals);
  if (decision !== "review" || !isCount || approvals < 1 || approvals > maxApprovals)
    throw malformed(`\`approvals\` of a review to be from 1 to ${maxApprovals}`);
  return { ...reason, approvals };
}

/** Reads the JSON of an answer, within bounds. Throws EngineError. */
export function parseEngineAnswer(answer: Uint8Array): Json {
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
