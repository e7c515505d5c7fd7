import { parse, stringify } from "yaml";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import { GatewayError } from "../../core/action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../core/action/json.ts";
import type { Policy } from "../../core/action/policy.ts";
import { compilePack, type PackOptions } from "../../core/policy/pack.ts";
import { caseAction, judgeCase } from "../../core/policy/test-case.ts";
import type { ReadyTest } from "../../core/policy/test-file.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { acceptUnverified, type VerifiedExtension } from "../../core/trust/verified-extension.ts";

/** A pack with one small mistake in it. */
interface PackMutant {
  /** The file, the rule and the mistake. */
  readonly name: string;
  readonly file: string;
  readonly text: string;
}

/** How a pack's own tests stand up to mistakes. Those that its own checks refuse to load count neither way. */
export interface MutationScore {
  readonly killed: number;
  readonly survivors: readonly string[];
}

/** Makes each `stride`-th mistake of `mutantsOf` in a pack, one at a time, and runs its own tests on it until one fails. */
export async function scorePack(folder: string, stride: number): Promise<MutationScore> {
  const whole = await readExtensionFolder(folder, "pack");
  const judged = await judgedTests(optionsOf(acceptUnverified(whole, null), folder));
  let killed = 0;
  let made = 0;
  const survivors: string[] = [];
  for (const [file, bytes] of whole.files) {
    for (const mutant of mutantsOf(file, bytes.toString("utf8"))) {
      if (made++ % stride !== 0) continue;
      const files = new Map(whole.files).set(file, Buffer.from(mutant.text));
      const isKilled = await isFound(optionsOf(acceptUnverified({ ...whole, files }, null), folder), judged);
      if (isKilled === undefined) continue;
      if (isKilled) killed++;
      else survivors.push(mutant.name);
    }
  }
  return { killed, survivors };
}

/** A test of a pack, with the action that it judges: both stay as they are whatever the mistake. */
interface JudgedTest extends ReadyTest {
  readonly action: ActionEnvelope;
}

function optionsOf(extension: VerifiedExtension, path: string): PackOptions {
  const clock = (): number => Date.UTC(2026, 0, 1);
  return { extension, path, mode: "enforce", settings: {}, shadowRules: [], clock };
}

async function judgedTests(options: PackOptions): Promise<readonly JudgedTest[]> {
  const { tests, test } = await compilePack(options);
  const failed = (await test()).filter(({ failures }) => failures.length > 0);
  if (failed.length > 0) throw new Error("expected a pack whose own tests pass");
  return Promise.all(tests.map(async (each) => ({ ...each, action: await caseAction(each.test) })));
}

/** Returns true where a test fails, undefined where the pack does not load. */
async function isFound(options: PackOptions, tests: readonly JudgedTest[]): Promise<boolean | undefined> {
  try {
    const { policyWith } = await compilePack(options, false);
    const policies = new Map<string, Policy>();
    for (const { test, settings, action } of tests) {
      const key = JSON.stringify(settings);
      const policy = policies.get(key) ?? policyWith(settings);
      policies.set(key, policy);
      if (judgeCase(test, await policy.evaluate(action)).failures.length > 0) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "PACK_INVALID") return undefined;
    throw error;
  }
}

function* mutantsOf(file: string, text: string): Iterable<PackMutant> {
  if (file.startsWith("data/")) {
    for (const [name, value] of shorterValues(parse(text) as Json)) {
      yield { name: `${file}: without ${name}`, file, text: JSON.stringify(value) };
    }
  }
  if (!file.startsWith("rules/")) return;
  const { rules } = parse(text) as { readonly rules: readonly JsonObject[] };
  for (const [index, rule] of rules.entries()) {
    const id = String(rule.id);
    yield { name: `${id}: left out`, file, text: stringify({ rules: rules.toSpliced(index, 1) }) };
    for (const [mistake, wrong] of wrongRules(rule)) {
      yield { name: `${id}: ${mistake}`, file, text: stringify({ rules: rules.with(index, wrong) }) };
    }
  }
}

function* wrongRules(rule: JsonObject): Iterable<readonly [mistake: string, rule: JsonObject]> {
  for (const decision of ["allow", "review", "block"]) {
    if (decision !== rule.decision) yield [`decides ${decision}`, { ...rule, decision }];
  }
  for (const member of ["when", "unless"]) {
    const expression = rule[member];
    if (typeof expression !== "string") continue;
    yield [`without \`${member}\``, omit(rule, member)];
    for (const [mistake, text] of wrongExpressions(expression)) {
      yield [`${member}: ${mistake}`, { ...rule, [member]: text }];
    }
  }
  const { match } = rule;
  if (!isJsonObject(match)) return;
  for (const [key, value] of Object.entries(match)) {
    yield [`without match of ${key}`, { ...rule, match: omit(match, key) }];
    if (!Array.isArray(value) || value.length === 1) continue;
    for (const item of value as readonly Json[]) {
      const rest = value.filter((each: Json) => each !== item);
      yield [`match of ${key} without ${String(item)}`, { ...rule, match: { ...match, [key]: rest } }];
    }
  }
}

const replacements: readonly (readonly [pattern: RegExp, wrong: string])[] = [
  [/&&/g, "||"],
  [/\|\|/g, "&&"],
  [/==/g, "!="],
  [/!=/g, "=="],
  [/!(?=[a-z(])/g, ""],
  [/(?<= )> /g, ">= "],
  [/(?<= )>= /g, "> "],
  [/(?<= )<= /g, "< "],
  [/\.exists\(/g, ".all("],
];

function* wrongExpressions(expression: string): Iterable<readonly [mistake: string, text: string]> {
  const strings = stringSpans(expression);
  for (const [pattern, wrong] of replacements) {
    for (const { index, 0: found } of expression.matchAll(pattern)) {
      if (strings.some(({ start, end }) => start <= index && index < end)) continue;
      yield [`\`${found}\` at ${index}`, splice(expression, index, index + found.length, wrong)];
    }
  }
  for (const { start, end } of strings) {
    const text = expression.slice(start, end);
    for (const { from, to } of alternatives(text)) {
      yield [`without \`${text.slice(from, to)}\``, splice(expression, start + from, start + to, "")];
    }
    const item = /^\s*,\s*/.exec(expression.slice(end))?.[0];
    if (item !== undefined && /[[,]\s*$/.test(expression.slice(0, start))) {
      yield [`without ${text}`, splice(expression, start, end + item.length, "")];
    }
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** String literals with their quotes. */
function stringSpans(expression: string): readonly Span[] {
  return [...expression.matchAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g)].map(({ index, 0: text }) => {
    return { start: index, end: index + text.length };
  });
}

/** The alternatives of a pattern's groups, each with the bar that sets it off. */
function alternatives(pattern: string): readonly { readonly from: number; readonly to: number }[] {
  const found: { from: number; to: number }[] = [];
  const open: { start: number; bars: number[] }[] = [];
  let inClass = false;
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    // An escape in a string of CEL is `\\` and what it escapes.
    if (character === "\\") at += pattern[at + 1] === "\\" ? 2 : 1;
    else if (inClass) inClass = character !== "]";
    else if (character === "[") inClass = true;
    else if (character === "(") open.push({ start: at, bars: [] });
    else if (character === "|") open.at(-1)?.bars.push(at);
    else if (character === ")") found.push(...partsOf(open.pop(), at));
  }
  return found;
}

function partsOf(
  group: { readonly start: number; readonly bars: readonly number[] } | undefined,
  end: number,
): readonly { from: number; to: number }[] {
  if (group === undefined || group.bars.length === 0) return [];
  const [first = end, ...later] = group.bars;
  return [
    { from: group.start + 1, to: first + 1 },
    ...[first, ...later].map((bar, index) => ({ from: bar, to: later[index] ?? end })),
  ];
}

/** Data with one item of one list left out. */
function* shorterValues(value: Json): Iterable<readonly [name: string, value: Json]> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield [JSON.stringify(item), value.toSpliced(index, 1)];
  } else if (isJsonObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      for (const [name, shorter] of shorterValues(member)) yield [`${name} of ${key}`, { ...value, [key]: shorter }];
    }
  }
}

function omit(value: JsonObject, name: string): JsonObject {
  const { [name]: _, ...rest } = value;
  return rest;
}

function splice(text: string, start: number, end: number, middle: string): string {
  return text.slice(0, start) + middle + text.slice(end);
}
