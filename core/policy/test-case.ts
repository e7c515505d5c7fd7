import { type Capability, capabilities } from "../kernel/capability.ts";
import { type Decision, decisions } from "../kernel/decision.ts";
import { type ActionEnvelope, phases, protocols, sealEnvelope } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";
import { mostApprovals, type Policy, type Verdict } from "../kernel/policy.ts";
import { roles } from "../kernel/role.ts";
import type { Faults, Place } from "./fault.ts";
import { determiningFindings, requiredApprovals } from "./verdict.ts";
import { toJson, type YamlMap, type YamlNode } from "./yaml/node.ts";
import { MapReader } from "./yaml/reader.ts";

/** One action a pack's author states the verdict of. */
export interface TestCase {
  readonly name: string;
  readonly place: Place;
  readonly envelope: ActionEnvelope;
  /** Settings in place of the defaults, member by member. */
  readonly settings: JsonObject;
  readonly expect: Expectation;
}

interface Expectation {
  readonly decision: Decision | "abstain";
  /** Rules with a finding, and rules without one. */
  readonly rules: readonly string[];
  readonly notRules: readonly string[];
  readonly errors: number;
  /** How many reviewers a review asks for. */
  readonly approvals: number | undefined;
  /** A part of some finding's message. */
  readonly message: string | undefined;
}

export interface TestResult {
  readonly name: string;
  readonly place: Place;
  /** What was not as expected; empty where the case passed. */
  readonly failures: readonly string[];
}

const mostRows = 1_000;
const caseKeys = ["name", "envelope", "each", "settings", "expect"] as const;
const expectKeys = ["decision", "rules", "not_rules", "errors", "message", "approvals"] as const;
const envelopeKeys = [
  "time",
  "tenant",
  "principal",
  "session",
  "task",
  "protocol",
  "phase",
  "tool",
  "target",
  "capability",
  "arguments",
  "continuation",
  "output",
  "tool_definition",
  "client",
] as const;
const verdicts = [...decisions, "abstain"] as const;
const name = { max: 256 } as const;

/** Reads one case; `each` makes one of every row, the row's members taking the place of the case's envelope's. */
export function parseCase(node: YamlNode, faults: Faults): readonly TestCase[] {
  const reader = new MapReader(node, "a case", caseKeys, faults);
  const title = reader.text("name", name);
  const settings = reader.jsonObject("settings");
  const expect = parseExpectation(reader.get("expect") ?? node, reader.get("expect") !== undefined, faults);
  const base = reader.get("envelope");
  const rows = reader.get("each") === undefined ? [undefined] : reader.items("each");
  if (rows.length === 0 || rows.length > mostRows)
    reader.fault("each", `expected 1 to ${mostRows} rows, got ${rows.length}`);
  return rows.slice(0, mostRows).map((row, index) => ({
    name: row === undefined ? title : `${title} #${index + 1}`,
    place: row?.place ?? reader.place,
    envelope: parseEnvelope(mergeMaps(base, row, reader.place), faults),
    settings,
    expect,
  }));
}

function parseExpectation(node: YamlNode, given: boolean, faults: Faults): Expectation {
  if (!given) faults.add(node.place, "expected `expect` to be a mapping, got nothing");
  const reader = new MapReader(node, "`expect`", given ? expectKeys : caseKeys, faults);
  const decision = given ? reader.choice("decision", verdicts, undefined) : "abstain";
  const asked = given && reader.get("approvals") !== undefined;
  if (asked && decision !== "review") reader.fault("approvals", "expected `approvals` only with the decision review");
  return {
    decision,
    rules: reader.texts("rules", name),
    notRules: reader.texts("not_rules", name),
    errors: reader.integer("errors", 0, 1, 0),
    message: reader.optionalText("message", { max: 1_024 }),
    approvals: asked ? reader.integer("approvals", 1, mostApprovals, 1) : undefined,
  };
}

function mergeMaps(base: YamlNode | undefined, row: YamlNode | undefined, place: Place): YamlNode {
  if (base !== undefined && base.kind !== "map") return base;
  if (row !== undefined && row.kind !== "map") return row;
  const members = new Map([...(base?.members ?? []), ...(row?.members ?? [])]);
  return { kind: "map", members, place: row?.place ?? base?.place ?? place } satisfies YamlMap;
}

/** An envelope of which only the interesting part was written: an operator's MCP call at the start of 2026. */
function parseEnvelope(node: YamlNode, faults: Faults): ActionEnvelope {
  const reader = new MapReader(node, "`envelope`", envelopeKeys, faults);
  const nested = (key: string, keys: readonly string[]): MapReader =>
    new MapReader(
      reader.get(key) ?? { kind: "map", members: new Map(), place: node.place },
      `\`${key}\``,
      keys,
      faults,
    );
  const principal = nested("principal", ["id", "role", "key_id"]);
  const session = nested("session", ["id", "transport", "label"]);
  const client = nested("client", ["name", "version", "address"]);
  const label = session.optionalText("label", name);
  const continuation =
    reader.get("continuation") === undefined ? {} : { continuation: reader.jsonObject("continuation") };
  const output = reader.json("output");
  return sealEnvelope({
    version: 1,
    id: "019b7600-0000-7000-8000-000000000000",
    time: reader.instant("time", false) ?? "2026-01-01T00:00:00.000Z",
    tenant: reader.optionalText("tenant", name) ?? "default",
    principal: {
      id: principal.optionalText("id", name) ?? "principal-v1-test",
      role: principal.choice("role", roles, "operator"),
      keyId: principal.optionalText("key_id", name) ?? "test",
    },
    session: {
      id: session.optionalText("id", name) ?? "session-v1-test",
      transport: session.choice("transport", ["http", "sse"], "http"),
      ...(label === undefined ? {} : { label }),
    },
    task: reader.optionalText("task", name) ?? null,
    protocol: reader.choice("protocol", protocols, "mcp"),
    phase: reader.choice("phase", phases, "input"),
    tool: reader.optionalText("tool", name) ?? "tool",
    target: reader.optionalText("target", name) ?? "upstream",
    capability: reader.choice<Capability>("capability", capabilities, "execute"),
    arguments: reader.json("arguments") ?? {},
    ...continuation,
    ...(output === undefined ? {} : { output }),
    ...toolDefinition(reader.get("tool_definition"), faults),
    client: {
      name: client.optionalText("name", name) ?? "test",
      version: client.optionalText("version", name) ?? "1.0.0",
      address: client.optionalText("address", name) ?? "127.0.0.1",
    },
  });
}

function toolDefinition(node: YamlNode | undefined, faults: Faults): Pick<ActionEnvelope, "tool_definition"> {
  if (node === undefined) return {};
  const reader = new MapReader(node, "`tool_definition`", ["digest", "annotations"], faults);
  const annotations = reader.get("annotations");
  return {
    tool_definition: {
      digest: reader.optionalText("digest", name) ?? `sha256:${"0".repeat(64)}`,
      annotations: annotations === undefined ? {} : (toJson(annotations) as JsonObject),
    },
  };
}

/** Asks the policy about the case's action, and says what differs from what its author expects. */
export async function runCase(test: TestCase, policy: Policy): Promise<TestResult> {
  const verdict = await policy.evaluate(test.envelope);
  return { name: test.name, place: test.place, failures: compare(test.expect, verdict) };
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
