import { type Decision, isDecision, strictest } from "../action/decision.ts";
import type { Phase } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type Finding, maxApprovals, type Redaction, severities, type Verdict } from "../action/policy.ts";
import { maxRedactions, readRedaction } from "../action/redaction.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { PluginBreach } from "./breach.ts";

const bounds = { depth: 8, nodes: 4_096, stringLength: 1_024, reader: "exact" } as const;
const maxFindings = 256;
const maxLengths = { rule: 128, message: 512, pointer: 1_024 } as const;
const rulePattern = /^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+$/;
/** Unambiguous, so that matching is linear in text from a plugin. */
const pointerPattern = /^\/(?:[^~]|~[01])*$/s;
const verdictMembers = ["decision", "findings", "redactions"];
const findingMembers = ["rule", "decision", "message", "severity", "risk", "pointer", "approvals"];

/**
 * Parses a plugin's output into a Verdict. Requires known members, bounded and printable texts, rules that begin with
 * the plugin's name (`<name>.…`), the decision of the strictest finding, and redactions in phase `output` only.
 * `abstain` may have findings that allow. Anything else is the breach `malformed_verdict`.
 */
export function readPluginVerdict(answer: Uint8Array, name: string, phase: Phase): Verdict {
  const value = parse(answer);
  if (!isJsonObject(value) || !hasOnly(value, verdictMembers)) throw malformed("`decision` and `findings`");
  const { decision, findings } = value;
  if (decision !== "abstain" && !isDecision(decision)) throw malformed("a known decision");
  if (!Array.isArray(findings) || findings.length > maxFindings) {
    throw malformed(`a list of at most ${maxFindings} findings`);
  }
  const read = findings.map((finding: Json) => readFinding(finding, name));
  const strongest = read.reduce<Decision | undefined>(
    (found, each) => (found === undefined ? each.decision : strictest(found, each.decision)),
    undefined,
  );
  if (!isDecisionOf(decision, strongest)) throw malformed("the decision of the strictest finding");
  return Object.freeze({
    decision,
    findings: Object.freeze(read),
    risk: read.reduce((risk, finding) => Math.max(risk, finding.risk), 0),
    ...readRedactions(value.redactions, name, phase),
  });
}

const maxRemembered = 4_096;

/** Reads the answers of one plugin. Most calls are answered as the one before was: its bytes are not parsed again. */
export class VerdictReader {
  readonly #name: string;
  #last: { readonly answer: Uint8Array; readonly phase: Phase; readonly verdict: Verdict } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** As `readPluginVerdict`; a verdict is frozen, and the same one may be returned again. */
  read(answer: Uint8Array, phase: Phase): Verdict {
    const last = this.#last;
    if (last?.phase === phase && Buffer.compare(last.answer, answer) === 0) return last.verdict;
    const verdict = readPluginVerdict(answer, this.#name, phase);
    if (answer.length <= maxRemembered) this.#last = { answer: answer.slice(), phase, verdict };
    return verdict;
  }
}

/** A plugin may abstain without a finding or with findings that only allow: those permit nothing. */
function isDecisionOf(decision: Verdict["decision"], strongest: Decision | undefined): boolean {
  if (strongest === undefined) return decision === "abstain" || decision === "allow";
  return decision === strongest || (decision === "abstain" && strongest === "allow");
}

function parse(answer: Uint8Array): Json {
  try {
    return parseStrictJson(answer, bounds);
  } catch (error) {
    if (error instanceof GatewayError) throw malformed("strict JSON");
    throw error;
  }
}

function readRedactions(value: Json | undefined, name: string, phase: Phase): Pick<Verdict, "redactions"> {
  if (value === undefined) return {};
  if (phase !== "output") throw malformed("redactions in phase `output` only");
  if (!Array.isArray(value) || value.length > maxRedactions) {
    throw malformed(`a list of at most ${maxRedactions} redactions`);
  }
  return { redactions: Object.freeze(value.map((redaction: Json) => readOwnRedaction(redaction, name))) };
}

function readOwnRedaction(value: Json, name: string): Redaction {
  const redaction = readRedaction(value);
  if (typeof redaction === "string") throw malformed(redaction);
  if (!isOwnRule(redaction.rule, name)) throw malformed(ownRules(name));
  return redaction;
}

function readFinding(value: Json, name: string): Finding {
  if (!isJsonObject(value) || !hasOnly(value, findingMembers)) throw malformed("findings of known members");
  const { rule, decision, message, severity, risk, pointer, approvals } = value;
  if (!isText(rule, maxLengths.rule) || !isOwnRule(rule, name)) throw malformed(ownRules(name));
  if (!isDecision(decision)) throw malformed("a known decision in each finding");
  if (!isText(message, maxLengths.message) || escapeHidden(message) !== message) throw malformed("printable messages");
  const known = severities.find((each) => each === severity);
  if (known === undefined) throw malformed("a known severity");
  if (!isWhole(risk, 0, 100)) throw malformed("a whole risk from 0 to 100");
  const optional = { ...readPointer(pointer), ...readApprovals(approvals, decision) };
  return Object.freeze({ rule, decision, message, severity: known, risk, mode: "enforce", ...optional });
}

function readPointer(pointer: Json | undefined): Pick<Finding, "pointer"> {
  if (pointer === undefined) return {};
  if (!isText(pointer, maxLengths.pointer) || !pointerPattern.test(pointer)) throw malformed("a JSON Pointer");
  return { pointer };
}

function readApprovals(approvals: Json | undefined, decision: Decision): Pick<Finding, "approvals"> {
  if (approvals === undefined) return {};
  if (decision !== "review" || !isWhole(approvals, 1, maxApprovals)) throw malformed("`approvals` of a review");
  return { approvals };
}

function ownRules(name: string): string {
  return `rules that begin with \`${name}.\`, the plugin's name in its manifest`;
}

function isOwnRule(rule: string, name: string): boolean {
  return rulePattern.test(rule) && rule.startsWith(`${name}.`);
}

function isText(value: Json | undefined, maxLength: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= maxLength && value.isWellFormed();
}

function isWhole(value: Json | undefined, min: number, max: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
}

function hasOnly(value: JsonObject, members: readonly string[]): boolean {
  return Object.keys(value).every((key) => members.includes(key));
}

function malformed(expected: string): PluginBreach {
  return new PluginBreach("malformed_verdict", `expected ${expected}`);
}
