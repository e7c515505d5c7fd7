import { capabilities } from "../../action/capability.ts";
import type { Decision } from "../../action/decision.ts";
import type { Json } from "../../action/json.ts";
import { isJsonObject } from "../../action/json.ts";
import { defaultRisk, defaultSeverity, maxApprovals, type Severity, severities } from "../../action/policy.ts";
import { didYouMeanHint } from "../../config/check.ts";
import { type FaultList, type Place, quoteInput } from "../../config/fault.ts";
import type { Cedar, DetailedError, PolicyJson } from "./library.ts";

export const policyFile = "policies.cedar";

/** One policy of the file, with what its annotations say. */
export interface CedarPolicyText {
  /** Cedar's name for it in answers: `policy0`, by its place in the file. */
  readonly cedarId: string;
  /** The last part of its rule's id: the annotation `@id`, or `cedarId`. */
  readonly id: string;
  readonly text: string;
  readonly json: PolicyJson;
  readonly place: Place;
  /** The decision where it determines Cedar's answer. */
  readonly decision: Decision;
  readonly reason: string;
  readonly severity: Severity;
  readonly risk: number;
  readonly approvals: number | undefined;
}

const maxPolicies = 500;
/** The evaluator calls itself for each level, on a stack of its own that is small. */
const maxDepth = 256;
const idPattern = /^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)*$/;
const annotations = ["id", "reason", "decision", "severity", "risk", "approvals"] as const;

/** Reads `policies.cedar`. Adds every fault; what Cedar cannot read as a whole gives none of its policies. */
export function readPolicies(cedar: Cedar, source: string, faults: FaultList): readonly CedarPolicyText[] {
  const parsed = cedar.policySetTextToParts(source);
  if (parsed.type === "failure") {
    for (const error of parsed.errors) faults.addAt(placeOf(source, error), describe(error));
    return [];
  }
  const start = { file: policyFile, line: 1, column: 1 };
  if (parsed.policy_templates.length > 0) faults.addAt(start, "expected policies, got a template: nothing links it");
  const { length } = parsed.policies;
  if (length === 0) faults.addAt(start, "expected at least one policy, got none");
  if (length > maxPolicies) faults.addAt(start, `expected at most ${maxPolicies} policies, got ${length}`);
  if (length === 0 || length > maxPolicies) return [];
  // They come sorted by their ids as texts: policy1, policy10, policy2.
  const ids = parsed.policies.map((_, index) => `policy${index}`);
  const byId = new Map(ids.toSorted().map((id, at) => [id, parsed.policies[at] as string]));
  let from = 0;
  const policies = ids.map((cedarId) => {
    const text = byId.get(cedarId) as string;
    const found = source.indexOf(text, from);
    if (found !== -1) from = found + text.length;
    const place = found === -1 ? start : placeAt(source, found);
    return readPolicy(cedar, { cedarId, text, place }, faults);
  });
  refuseRepeatedIds(policies, faults);
  return policies;
}

function readPolicy(
  cedar: Cedar,
  { cedarId, text, place }: Pick<CedarPolicyText, "cedarId" | "text" | "place">,
  faults: FaultList,
): CedarPolicyText {
  const read = cedar.policyToJson(text);
  if (read.type === "failure") throw new TypeError("readPolicy: expected a policy that was read before");
  const { json } = read;
  if (depthOf(json as unknown as Json) > maxDepth)
    faults.addAt(place, "expected a policy that is not nested so deeply");
  const given = json.annotations ?? {};
  const add = (message: string): void => faults.addAt(place, message);
  for (const name of Object.keys(given)) {
    if (!annotations.some((known) => known === name)) {
      const known = annotations.map((each) => `\`@${each}\``).join(", ");
      add(`expected one of the annotations ${known}, got \`@${name}\`${didYouMeanHint(name, annotations)}`);
    }
  }
  const id = given.id ?? cedarId;
  if (!idPattern.test(id)) add(`\`@id\`: expected words of a–z, 0–9 and \`-\`, joined by \`.\`, got ${quoteInput(id)}`);
  const decision = readDecision(json.effect, given.decision, add);
  const severity = severities.find((each) => each === given.severity) ?? defaultSeverity[decision];
  if (given.severity !== undefined && given.severity !== severity)
    add(`\`@severity\`: expected ${severities.join(", ")}`);
  const risk = readNumber(given.risk, 0, 100);
  if (risk === null) add("`@risk`: expected a number from 0 to 100");
  const approvals = readNumber(given.approvals, 1, maxApprovals);
  if (approvals === null || (approvals !== undefined && decision !== "review"))
    add(`\`@approvals\`: expected a number from 1 to ${maxApprovals}, beside \`@decision("review")\``);
  const effect = json.effect === "permit" ? "permitted" : "forbidden";
  const reason = given.reason ?? `${effect} by policy \`${id}\``;
  if (reason.length > 1_024) add("`@reason`: expected at most 1024 characters");
  return {
    ...{ cedarId, id, text, json, place, decision, reason, severity },
    risk: risk ?? defaultRisk[severity],
    approvals: approvals ?? undefined,
  };
}

function readDecision(
  effect: PolicyJson["effect"],
  given: string | undefined,
  add: (message: string) => void,
): Decision {
  const usual = effect === "permit" ? "allow" : "block";
  if (given === undefined || given === usual) return usual;
  if (effect === "permit" && given === "review") return "review";
  const allowed =
    effect === "permit" ? "`allow` or `review`" : "`block`: to ask a person, mark a `permit` with `review`";
  add(`\`@decision\`: expected, for a ${effect}, ${allowed}, got ${quoteInput(given)}`);
  return "block";
}

/** Undefined without a text, null for one that is not such a number. */
function readNumber(text: string | undefined, minimum: number, maximum: number): number | undefined | null {
  if (text === undefined) return undefined;
  const number = /^\d{1,3}$/.test(text) ? Number(text) : -1;
  return number >= minimum && number <= maximum ? number : null;
}

function refuseRepeatedIds(policies: readonly CedarPolicyText[], faults: FaultList): void {
  const seen = new Set<string>();
  for (const { id, place } of policies) {
    if (seen.has(id)) faults.addAt(place, `\`@id\`: expected an id of its own, got \`${id}\``);
    seen.add(id);
  }
}

/** Checks the policies against the schema. What Cedar warns of is a fault: a policy that can never apply protects nothing. */
export function validatePolicies(cedar: Cedar, schema: string, source: string, faults: FaultList): void {
  const answer = cedar.validate({ schema, policies: { staticPolicies: source } });
  if (answer.type === "failure") {
    for (const error of answer.errors) faults.addAt(placeOf(source, error), describe(error));
    return;
  }
  const seen = new Set<string>();
  for (const { error } of [...answer.validationErrors, ...answer.validationWarnings]) {
    const place = placeOf(source, error);
    const key = `${place.line}:${place.column}:${error.message}`;
    if (seen.has(key)) continue;
    seen.add(key);
    faults.addAt(place, describe(error));
  }
}

/** Cedar counts bytes; its text may quote names of the file. */
function placeOf(source: string, { sourceLocations = [] }: DetailedError): Place {
  const bytes = Buffer.from(source).subarray(0, sourceLocations[0]?.start ?? 0);
  return placeAt(source, bytes.toString("utf8").length);
}

function placeAt(source: string, offset: number): Place {
  const before = source.slice(0, offset).split("\n");
  return { file: policyFile, line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

function describe({ message, help }: DetailedError): string {
  return help === null ? message : `${message}; ${help}`;
}

function depthOf(value: Json): number {
  if (Array.isArray(value)) return 1 + Math.max(0, ...value.map(depthOf));
  return isJsonObject(value) ? 1 + Math.max(0, ...Object.values(value).map((member) => depthOf(member as Json))) : 0;
}

/** The actions of the gateway: a call by its capability, seeing a tool, and returning an answer. */
export const gatewayActions: readonly string[] = [...capabilities, "list", "return"];

/** The action and resource that a policy's scope names; null where it fits several. */
export function scopeOf({ action, resource }: PolicyJson): {
  readonly action: string | null;
  readonly tool: string | null;
} {
  return { action: literalOf(action), tool: literalOf(resource) };
}

function literalOf(constraint: unknown): string | null {
  if (!isJsonObject(constraint) || constraint.op !== "==" || !isJsonObject(constraint.entity)) return null;
  const { entity } = constraint;
  const uid = isJsonObject(entity.__entity) ? entity.__entity : entity;
  return typeof uid.id === "string" && typeof uid.type === "string" ? JSON.stringify([uid.type, uid.id]) : null;
}
