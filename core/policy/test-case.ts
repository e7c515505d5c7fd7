import type { ActionEnvelope } from "../action/envelope.ts";
import { deepFreeze, type JsonObject } from "../action/json.ts";
import type { Policy, Redaction, Verdict } from "../action/policy.ts";
import { redactedText } from "../action/redaction.ts";
import { plainValue, type YamlNode } from "../config/document.ts";
import type { FaultList, Place } from "../config/fault.ts";
import { FactReader } from "../fact/fact-reader.ts";
import { shippedParsers } from "../fact/shipped-parser.ts";
import { checkNode, memberOf } from "./extension-file.ts";
import { type ExpectationForm, packCaseSchema, pluginCaseSchema } from "./schema.ts";
import { buildTestAction, type Subject, type TestedAction } from "./test-action.ts";
import { findDetermining } from "./verdict.ts";

/** One test: an action and its expected verdict. */
export interface TestCase extends TestedAction {
  readonly name: string;
  readonly place: Place;
  /** Settings that replace the defaults, member by member. */
  readonly settings: JsonObject;
  readonly expect: ExpectationForm;
}

export interface TestResult {
  readonly name: string;
  readonly place: Place;
  /** The differences from the expectation; empty where the case passed. */
  readonly failures: readonly string[];
}

const reader = new FactReader({ parsers: shippedParsers });

/** Reads one case; `each` makes one case per row, whose members replace those of the case's action. */
export function parseCase(node: YamlNode, path: string, subject: Subject, faults: FaultList): readonly TestCase[] {
  const form = checkNode(node, subject === "envelope" ? packCaseSchema : pluginCaseSchema, faults, path);
  if (form === undefined) return [];
  const title = form.name.trim();
  const base = memberOf(node, subject);
  const each = memberOf(node, "each");
  const rows = each?.kind === "list" ? each.items : [undefined];
  const { expect } = form;
  if (expect.approvals !== null && expect.decision !== "review") {
    const place = memberOf(node, "expect") ?? node;
    const { place: at } = memberOf(place, "approvals") ?? place;
    faults.addAt(at, "expected `approvals` only with the decision review");
  }
  return rows.map((row, index) => ({
    name: row === undefined ? title : `${title} #${index + 1}`,
    place: row?.place ?? node.place,
    ...buildTestAction({ ...membersOf(base), ...membersOf(row) }, subject),
    settings: form.settings,
    expect,
  }));
}

function membersOf(node: YamlNode | undefined): JsonObject {
  return node === undefined ? {} : (plainValue(node) as JsonObject);
}

/** Evaluates the case's action and compares the verdict with the expectation. */
export async function runCase(test: TestCase, policy: Policy): Promise<TestResult> {
  return judgeCase(test, await policy.evaluate(await caseAction(test)));
}

/** Returns the case's action with the facts of its stated arguments. */
export async function caseAction({ envelope, stated }: TestCase): Promise<ActionEnvelope> {
  return stated === undefined ? envelope : deepFreeze(await reader.describe(envelope, stated));
}

/** Compares a verdict with the case's expectation. */
export function judgeCase({ name, place, expect, envelope }: TestCase, verdict: Verdict): TestResult {
  const { redactions } = expect;
  const misplaced = redactions === null ? [] : compareRedactions(redactions, verdict, envelope);
  return { name, place, failures: [...compare(expect, verdict), ...misplaced] };
}

function compare(expected: ExpectationForm, verdict: Verdict): readonly string[] {
  const failures: string[] = [];
  const found = verdict.findings.map((finding) => finding.rule);
  if (verdict.decision !== expected.decision) failures.push(`expected ${expected.decision}, got ${verdict.decision}`);
  for (const rule of expected.rules)
    if (!found.includes(rule)) failures.push(`expected rule \`${rule}\`, got ${list(found)}`);
  for (const rule of expected.not_rules)
    if (found.includes(rule)) failures.push(`expected no finding of rule \`${rule}\``);
  if (expected.errors === 0 && verdict.error !== undefined) failures.push(`expected no error, got ${verdict.error}`);
  if (expected.errors === 1 && verdict.error === undefined) failures.push("expected an error, got none");
  const { approvals } = findDetermining(verdict.findings, verdict.decision);
  if (expected.approvals !== null && verdict.decision === "review" && approvals !== expected.approvals)
    failures.push(`expected ${expected.approvals} approvals, got ${approvals}`);
  const message = expected.message?.trim();
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
type ExpectedRedaction = NonNullable<ExpectationForm["redactions"]>[number];

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
    ...missing.map((each) => `expected a redaction ${JSON.stringify(withoutAbsent(each))}, got none such`),
    ...left.map((each) => `expected no redaction of \`${each.text}\` at ${each.pointer} by \`${each.rule}\``),
  ];
}

function fits(expected: ExpectedRedaction, got: Redaction & { readonly text: string }): boolean {
  return (["rule", "pointer", "text", "replacement"] as const).every(
    (key) => expected[key] === null || expected[key] === got[key],
  );
}

/** The members that a test states of a redaction. */
function withoutAbsent(expected: ExpectedRedaction): Partial<ExpectedRedaction> {
  return Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== null));
}
