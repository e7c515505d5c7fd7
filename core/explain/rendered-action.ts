import { type ActionEnvelope, withOutput, withoutHistory } from "../action/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../action/evaluation.ts";
import { findPlaces } from "../action/fact.ts";
import { compileGlob } from "../action/glob.ts";
import { deepFreeze, isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { namesOfPointer, valueAt } from "../action/json-pointer.ts";
import { mergeRedactions, redactOutput } from "../action/redaction.ts";
import { type Evaluator, evaluateOrBlock } from "../road/run.ts";

/** The rounds of searching for values to hide: a detector reports a limited number of places at once. */
const maxRounds = 6;

/** The members of an action in which policies search for values to hide. */
type Told = Readonly<Record<"arguments" | "continuation" | "output", Json>>;

/** The visible version of an action. */
export interface RenderedAction {
  readonly action: ActionEnvelope;
  readonly isRedacted: boolean;
}

export interface ShowParts {
  readonly chain: Evaluator;
  /** Returns the action without the members that are never kept; the same object where there are none. */
  readonly hide: (action: ActionEnvelope) => ActionEnvelope;
  readonly newId: () => string;
}

/**
 * Hides the session's earlier actions, the members that are never kept, the places that plugins point at, and the spans
 * they would redact in an output; also those of plugins in shadow mode. Returns null where it is unknown what to hide:
 * a plugin failed, would withhold an output without naming a place, or finds more in every round.
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

/** Returns the same action where nothing more has to be hidden. */
async function hideFound({ chain, newId }: ShowParts, action: ActionEnvelope): Promise<ActionEnvelope | null> {
  const { output = null, ...attempt } = action;
  const told: Told = { arguments: action.arguments, continuation: action.continuation ?? null, output };
  const road = { policies: chain, subscribers: [], newId };
  const asked = pluginVerdicts(await evaluateOrBlock(road, deepFreeze({ ...attempt, phase: "input" })));
  const answered = pluginVerdicts(await evaluateOrBlock(road, withOutput(action, told)));
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

/** Packs, engines and session policies never search for values to hide. */
function pluginVerdicts({ verdicts, shadow }: Evaluation): readonly PolicyVerdict[] {
  return [...verdicts, ...shadow].filter(({ policy }) => policy.kind === "plugin" || policy.kind === "external");
}

/** Returns true where the plugin failed, or would withhold an output without naming a place. */
function isSilent(verdict: PolicyVerdict): boolean {
  if (verdict.error !== undefined) return true;
  const isStopped = verdict.findings.some(({ decision }) => decision !== "allow");
  return isStopped && placesIn(verdict).length === 0;
}

/** The places of findings that review or block, as pointers into the searched members. */
function placesIn({ findings }: PolicyVerdict): readonly string[] {
  return findings.flatMap(({ decision, pointer }) => {
    const place = pointer?.replace(/^\/output(?=\/)/, "") ?? "";
    return decision !== "allow" && /^\/(?:arguments|continuation|output)(?:\/|$)/.test(place) ? [place] : [];
  });
}

/** The replacement of a hidden value. */
const hiddenValue = "[redacted]";

/** Replaces the value at one existing place. */
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
  return { ...changed, facts: { ...findPlaces(changed.arguments), effect: facts.effect } };
}

function objectOf(value: Json): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Hides the members of arguments and answers whose values evidence never keeps: globs over `<tool>:<member>`. */
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
