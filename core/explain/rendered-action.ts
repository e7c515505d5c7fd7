import type { Evaluation, PolicyVerdict } from "../action/decision.ts";
import { type ActionEnvelope, withOutput, withoutHistory } from "../action/envelope.ts";
import { findActionFacts } from "../action/fact.ts";
import { compileGlob } from "../action/glob.ts";
import { deepFreeze, isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { namesOfPointer, valueAt } from "../action/json-pointer.ts";
import { mergeRedactions, redactOutput } from "../action/redaction.ts";
import { type Evaluator, evaluateOrBlock } from "../road/run.ts";

/** A detector tells of so many places and no more: what is left is looked at again, at most so often. */
const maxRounds = 6;

/** The members of an action that a policy may find something in which nobody is to see. */
type Told = Readonly<Record<"arguments" | "continuation" | "output", Json>>;

/** What of an action may be seen, and whether that is less than it says. */
export interface RenderedAction {
  readonly action: ActionEnvelope;
  readonly isRedacted: boolean;
}

interface ShowParts {
  readonly chain: Evaluator;
  /** The action without what is never kept of it; the action itself where that is nothing. */
  readonly hide: (action: ActionEnvelope) => ActionEnvelope;
  readonly newId: () => string;
}

/**
 * The action without its session's past, without what is never kept, without what plugins point at in it, and without what they would redact were it
 * an upstream's answer; those in shadow mode too. Null where nobody can say what is to be hidden: a plugin could not
 * answer, would withhold it and does not say where, or finds more each time it is asked.
 */
export async function renderAction(parts: ShowParts, action: ActionEnvelope): Promise<RenderedAction | null> {
  const whole = action.history === undefined ? action : withoutHistory(action);
  let shown = deepFreeze(withFacts(parts.hide(whole), whole));
  for (let round = 0; round < maxRounds; round++) {
    const left = await hideFound(parts, shown);
    if (left === null) return null;
    if (left === shown) return { action: shown, isRedacted: shown.arguments !== whole.arguments || round > 0 };
    shown = deepFreeze(left);
  }
  return null;
}

/** The same action where nothing was found that is not hidden yet. */
async function hideFound({ chain, newId }: ShowParts, action: ActionEnvelope): Promise<ActionEnvelope | null> {
  const { output = null, ...attempt } = action;
  const told: Told = { arguments: action.arguments, continuation: action.continuation ?? null, output };
  const asked = pluginVerdicts(await evaluateOrBlock(chain, deepFreeze({ ...attempt, phase: "input" }), newId));
  const answered = pluginVerdicts(await evaluateOrBlock(chain, withOutput(action, told), newId));
  if (asked.some(({ error }) => error !== undefined) || answered.some(isSilent)) return null;
  const redactions = mergeRedactions(answered.flatMap((verdict) => verdict.redactions ?? []));
  const places = [...asked, ...answered].flatMap(placesIn);
  let left: Json = redactOutput(told, redactions);
  for (const place of places) {
    if (valueAt(left, place) === undefined) return null;
    left = hideAt(left, namesOfPointer(place));
  }
  const isNew = redactions.length > 0 || places.some((place) => valueAt(told, place) !== hiddenValue);
  return isNew ? replaceTold(action, left as Told) : action;
}

/** Packs, and what watches sessions, look for nothing that must not be seen. */
function pluginVerdicts({ verdicts, shadow }: Evaluation): readonly PolicyVerdict[] {
  return [...verdicts, ...shadow].filter(({ policy }) => policy.kind !== "pack" && policy.kind !== "session");
}

/** Whether it could not answer, or would withhold an answer like this and does not say where. */
function isSilent(verdict: PolicyVerdict): boolean {
  if (verdict.error !== undefined) return true;
  const isStopped = verdict.findings.some(({ decision }) => decision !== "allow");
  return isStopped && placesIn(verdict).length === 0;
}

/** Where it points at what it would hold or block, as a pointer into what is told. */
function placesIn({ findings }: PolicyVerdict): readonly string[] {
  return findings.flatMap(({ decision, pointer }) => {
    const place = pointer?.replace(/^\/output(?=\/)/, "") ?? "";
    return decision !== "allow" && /^\/(?:arguments|continuation|output)(?:\/|$)/.test(place) ? [place] : [];
  });
}

/** What stands in the place of what is not to be seen. */
const hiddenValue = "[redacted]";

/** The same value with another in one place, which is there. */
function hideAt(value: Json, [name, ...below]: readonly string[]): Json {
  if (name === undefined) return hiddenValue;
  if (Array.isArray(value)) return value.map((item: Json, at) => (String(at) === name ? hideAt(item, below) : item));
  const members = Object.entries(value as JsonObject);
  return Object.fromEntries(members.map(([key, member]) => [key, key === name ? hideAt(member, below) : member]));
}

function replaceTold(action: ActionEnvelope, left: Told): ActionEnvelope {
  const { continuation, output } = action;
  const replaced = {
    ...action,
    arguments: left.arguments,
    ...(continuation === undefined ? {} : { continuation: objectOf(left.continuation) }),
    ...(output === undefined ? {} : { output: left.output }),
  };
  return withFacts(replaced, action);
}

/** Facts were found in the arguments as these were. */
function withFacts(changed: ActionEnvelope, { arguments: args, facts }: ActionEnvelope): ActionEnvelope {
  if (facts === undefined || changed.arguments === args) return changed;
  return { ...changed, facts: findActionFacts(changed.arguments) };
}

function objectOf(value: Json): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** What hides the members of arguments and answers whose values evidence never keeps: globs over `<tool>:<member>`. */
export function memberHider(patterns: readonly string[]): (action: ActionEnvelope) => ActionEnvelope {
  const globs = patterns.map(compileGlob);
  if (globs.length === 0) return (action) => action;
  const isPrivate = (tool: string, member: string): boolean => globs.some((glob) => glob.test(`${tool}:${member}`));
  return (action) => {
    const { tool, arguments: args, output } = action;
    const hide = (value: Json): Json => {
      if (!isJsonObject(value)) return isPrivate(tool, "") ? hiddenValue : value;
      const members = Object.entries(value);
      if (!members.some(([name]) => isPrivate(tool, name))) return value;
      return Object.fromEntries(members.map(([name, each]) => [name, isPrivate(tool, name) ? hiddenValue : each]));
    };
    const left = hide(args);
    const answer = output === undefined ? undefined : hide(output);
    if (left === args && answer === output) return action;
    return { ...action, arguments: left, ...(answer === undefined ? {} : { output: answer }) };
  };
}
