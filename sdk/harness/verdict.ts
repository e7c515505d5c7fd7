import type { Decision, Phase, Verdict } from "../contract/index.ts";
import { PluginFault } from "./fault.ts";

const most = 256;
const rulePattern = /^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+$/;
const pointerPattern = /^\/(?:[^~\0]|~[01])*$/s;
const outputPattern = /^\/output\/(?:[^~\0]|~[01])*$/s;
/** Printable characters; a backslash before `u{` is how the gateway escapes others. */
const printablePattern = /^(?:[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\\]| |\\(?!u\{))+$/u;
/** From the weakest to the strictest. */
const decisions: readonly Decision[] = ["allow", "review", "block"];
const severities = ["info", "low", "medium", "high", "critical"];
const findingMembers = ["rule", "decision", "message", "severity", "risk", "pointer", "approvals"];
const redactionMembers = ["rule", "pointer", "start", "end", "replacement"];

type Members = Readonly<Record<string, unknown>>;

/**
 * Checks a plugin's output by the rules of the gateway. Throws PluginFault (`malformed_verdict`) that names the
 * violated one.
 */
export function readVerdict(answer: Uint8Array, name: string, phase: Phase): Verdict {
  const verdict = parse(answer);
  expect(isClosed(verdict, ["decision", "findings", "redactions"]), "`decision`, `findings` and maybe `redactions`");
  const { decision, findings, redactions } = verdict;
  expect(Array.isArray(findings) && findings.length <= most, `a list of at most ${most} findings`);
  for (const finding of findings) checkFinding(finding, name);
  const strictest = decisions.findLast((each) => findings.some((finding: Members) => finding.decision === each));
  // A plugin with findings that only allow may abstain: that permits nothing.
  const allowed = strictest === undefined || strictest === "allow" ? ["allow", "abstain"] : [strictest];
  expect(allowed.includes(decision as Decision), `the decision ${allowed.join(" or ")}`);
  if (redactions !== undefined) checkRedactions(redactions, name, phase);
  return verdict as unknown as Verdict;
}

function parse(answer: Uint8Array): Members {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(answer);
    const value: unknown = JSON.parse(text);
    // Each member has one colon outside of texts: more colons than members mean a repeated member.
    const colons = text.replace(/"(?:[^"\\]|\\.)*"/gs, "").split(":").length - 1;
    if (colons === membersIn(value)) return value as Members;
  } catch (cause) {
    throw new PluginFault("malformed_verdict", "expected JSON in UTF-8", { cause });
  }
  throw new PluginFault("malformed_verdict", "expected each member once");
}

function membersIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inside = Object.values(value).reduce<number>((sum, each) => sum + membersIn(each), 0);
  return Array.isArray(value) ? inside : inside + Object.keys(value).length;
}

function checkFinding(finding: unknown, name: string): void {
  expect(isClosed(finding, findingMembers), `findings of ${findingMembers.join(", ")}`);
  const { rule, decision, message, severity, risk, pointer, approvals } = finding;
  checkRule(rule, name);
  expect(decisions.includes(decision as Decision), "a known decision in each finding");
  expect(isText(message, 1, 512, printablePattern), "messages of 1 to 512 characters that show as themselves");
  expect(severities.includes(severity as string), `a severity of ${severities.join(", ")}`);
  expect(isWhole(risk, 0, 100), "a whole risk from 0 to 100");
  expect(pointer === undefined || isText(pointer, 1, 1_024, pointerPattern), "a JSON Pointer");
  const asked = approvals === undefined || (decision === "review" && isWhole(approvals, 1, 10));
  expect(asked, "`approvals` from 1 to 10, of a review");
}

function checkRedactions(redactions: unknown, name: string, phase: Phase): void {
  expect(phase === "output", "redactions in phase `output` only");
  expect(Array.isArray(redactions) && redactions.length <= most, `a list of at most ${most} redactions`);
  for (const redaction of redactions) {
    expect(isClosed(redaction, redactionMembers), `redactions of ${redactionMembers.join(", ")}`);
    const { rule, pointer, start, end, replacement } = redaction;
    checkRule(rule, name);
    expect(isText(pointer, 1, 1_024, outputPattern), "a JSON Pointer below `/output`");
    const spans = isWhole(start, 0, Number.MAX_SAFE_INTEGER) && isWhole(end, start + 1, Number.MAX_SAFE_INTEGER);
    expect(spans, "whole byte offsets, `start` below `end`");
    expect(isText(replacement, 0, 64, /^[ -~]*$/), "a replacement of at most 64 printable ASCII characters");
  }
}

function checkRule(rule: unknown, name: string): void {
  const own = isText(rule, 1, 128, rulePattern) && rule.startsWith(`${name}.`);
  expect(own, `rules that begin with \`${name}.\`, of a–z, 0–9, \`-\` and \`.\``);
}

function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new PluginFault("malformed_verdict", `expected ${what}`);
}

function isClosed(value: unknown, members: readonly string[]): value is Members {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).every((key) => members.includes(key));
}

function isText(value: unknown, least: number, longest: number, pattern: RegExp): value is string {
  if (typeof value !== "string" || value.length < least || value.length > longest) return false;
  return value.isWellFormed() && pattern.test(value);
}

function isWhole(value: unknown, least: number, highest: number): value is number {
  return (
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= highest && !Object.is(value, -0)
  );
}
