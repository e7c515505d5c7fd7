import { type Decision, decisions } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import { maxApprovals, type Policy, type Redaction, type Verdict } from "../action/policy.ts";
import { redactedText } from "../action/redaction.ts";
import type { Faults, Place } from "./fault.ts";
import { parseTestAction, type Subject } from "./test-action.ts";
import { determiningFindings, requiredApprovals } from "./verdict.ts";
import type { YamlMap, YamlNode } from "./yaml/node.ts";
import { MapReader } from "./yaml/reader.ts";

/** One test: an action and its expected verdict. */
export interface TestCase {
  readonly name: string;
  readonly place: Place;
  readonly envelope: ActionEnvelope;
  /** Settings that replace the defaults, member by member. */
  readonly settings: JsonObject;
  readonly expect: Expectation;
}

interface Expectation {
  readonly decision: Decision | "abstain";
  /** Rules that must have a finding, and rules that must have none. */
  readonly rules: readonly string[];
  readonly notRules: readonly string[];
  readonly errors: number;
  /** The number of reviewers that a review requires. */
  readonly approvals: number | undefined;
  /** Text that some finding's message must contain. */
  readonly message: string | undefined;
  /** All expected redactions; undefined where the author gives none. */
  readonly redactions: readonly ExpectedRedaction[] | undefined;
}

export interface TestResult {
  readonly name: string;
  readonly place: Place;
  /** The differences from the expectation; empty where the case passed. */
  readonly failures: readonly string[];
}

const maxRows = 1_000;
const expectKeys = ["decision", "rules", "not_rules", "errors", "message", "approvals", "redactions"] as const;
const verdicts = [...decisions, "abstain"] as const;
const name = { max: 256 } as const;

/** Reads one case; `each` makes one case per row, whose members replace those of the case's action. */
export function parseCase(node: YamlNode, subject: Subject, faults: Faults): readonly TestCase[] {
  const keys = ["name", subject, "each", "settings", "expect"];
  const reader = new MapReader(node, "a case", keys, faults);
  const title = reader.text("name", name);
  const settings = reader.jsonObject("settings");
  const expect = parseExpectation(reader.get("expect"), reader.place, faults);
  const base = reader.get(subject);
  const rows = reader.get("each") === undefined ? [undefined] : reader.items("each");
  if (rows.length === 0 || rows.length > maxRows)
    reader.fault("each", `expected 1 to ${maxRows} rows, got ${rows.length}`);
  return rows.slice(0, maxRows).map((row, index) => ({
    name: row === undefined ? title : `${title} #${index + 1}`,
    place: row?.place ?? reader.place,
    envelope: parseTestAction(mergeMaps(base, row, reader.place), subject, faults),
    settings,
    expect,
  }));
}

function parseExpectation(node: YamlNode | undefined, place: Place, faults: Faults): Expectation {
  if (node === undefined) faults.add(place, "expected `expect` to be a mapping, got nothing");
  const reader = new MapReader(node ?? { kind: "map", members: new Map(), place }, "`expect`", expectKeys, faults);
  const decision = node === undefined ? "abstain" : reader.choice("decision", verdicts, undefined);
  const asked = reader.get("approvals") !== undefined;
  if (asked && decision !== "review") reader.fault("approvals", "expected `approvals` only with the decision review");
  return {
    decision,
    rules: reader.texts("rules", name),
    notRules: reader.texts("not_rules", name),
    errors: reader.integer("errors", 0, 1, 0),
    message: reader.optionalText("message", { max: 1_024 }),
    approvals: asked ? reader.integer("approvals", 1, maxApprovals, 1) : undefined,
    redactions:
      reader.get("redactions") === undefined
        ? undefined
        : reader.items("redactions").map((item) => parseExpectedRedaction(item, faults)),
  };
}

function mergeMaps(base: YamlNode | undefined, row: YamlNode | undefined, place: Place): YamlNode {
  if (base !== undefined && base.kind !== "map") return base;
  if (row !== undefined && row.kind !== "map") return row;
  const members = new Map([...(base?.members ?? []), ...(row?.members ?? [])]);
  return { kind: "map", members, place: row?.place ?? base?.place ?? place } satisfies YamlMap;
}

/** Evaluates the case's action and compares the verdict with the expectation. */
export async function runCase(test: TestCase, policy: Policy): Promise<TestResult> {
  return judgeCase(test, await policy.evaluate(test.envelope));
}

/** Compares a verdict with the case's expectation. */
export function judgeCase({ name, place, expect, envelope }: TestCase, verdict: Verdict): TestResult {
  const { redactions } = expect;
  const misplaced = redactions === undefined ? [] : compareRedactions(redactions, verdict, envelope);
  return { name, place, failures: [...compare(expect, verdict), ...misplaced] };
}

function compare(expected: Expectation, verdict: Verdict): readonly string[] {
  const failures: string[] = [];
  const found = verdict.findings.map((finding) => finding.rule);
  if (verdict.decision !== expected.decision) failures.push(`expected ${expected.decision}, got ${verdict.decision}`);
  for (const rule of expected.rules)
    if (!found.includes(rule)) failures.push(`expected rule \`${rule}\`, got ${list(found)}`);
  for (const rule of expected.notRules)
    if (found.includes(rule)) failures.push(`expected no finding of rule \`${rule}\``);
  if (expected.errors === 0 && verdict.error !== undefined) failures.push(`expected no error, got ${verdict.error}`);
  if (expected.errors === 1 && verdict.error === undefined) failures.push("expected an error, got none");
  const approvals = requiredApprovals(determiningFindings(verdict.findings, verdict.decision));
  if (expected.approvals !== undefined && approvals !== expected.approvals)
    failures.push(`expected ${expected.approvals} approvals, got ${approvals}`);
  const { message } = expected;
  if (message !== undefined && !verdict.findings.some((finding) => finding.message.includes(message))) {
    failures.push(
      `expected a message with \`${message}\`, got ${list(verdict.findings.map((finding) => finding.message))}`,
    );
  }
  return failures;
}

function list(words: readonly string[]): string {
  return words.length === 0 ? "none" : words.map((word) => `\`${word}\``).join(", ");
}

/** One expected redaction: every given member must match. */
interface ExpectedRedaction {
  readonly rule: string | undefined;
  readonly pointer: string | undefined;
  /** What stands there. */
  readonly text: string | undefined;
  readonly replacement: string | undefined;
}

const keys = ["rule", "pointer", "text", "replacement"];
const long = { max: 1_024 } as const;

function parseExpectedRedaction(node: YamlNode, faults: Faults): ExpectedRedaction {
  const reader = new MapReader(node, "a redaction", keys, faults);
  const expected = {
    rule: reader.optionalText("rule", long),
    pointer: reader.optionalText("pointer", long),
    text: reader.optionalText("text", long),
    replacement: reader.optionalText("replacement", long),
  };
  if (Object.values(expected).every((member) => member === undefined)) {
    faults.add(node.place, `expected a redaction to have ${keys.join(", ")}, or some of them`);
  }
  return expected;
}

/** Returns the differences between the expected redactions and the verdict's, in any order. */
function compareRedactions(
  expected: readonly ExpectedRedaction[],
  { redactions = [] }: Verdict,
  { output = null }: ActionEnvelope,
): readonly string[] {
  const left = redactions.map((redaction) => ({ ...redaction, text: redactedText(output, redaction) }));
  const missing = expected.filter((each) => {
    const found = left.findIndex((redaction) => fits(each, redaction));
    if (found !== -1) left.splice(found, 1);
    return found === -1;
  });
  return [
    ...missing.map((each) => `expected a redaction ${JSON.stringify(each)}, got none such`),
    ...left.map((each) => `expected no redaction of \`${each.text}\` at ${each.pointer} by \`${each.rule}\``),
  ];
}

function fits(expected: ExpectedRedaction, got: Redaction & { readonly text: string }): boolean {
  return (["rule", "pointer", "text", "replacement"] as const).every(
    (key) => expected[key] === undefined || expected[key] === got[key],
  );
}
