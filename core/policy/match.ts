import {
  type ActionEffect,
  type ActionFacts,
  actionEffects,
  capabilityEffect,
  factKinds,
} from "../action/action-fact.ts";
import { type Capability, capabilities } from "../action/capability.ts";
import { type ActionEnvelope, type Phase, type Protocol, phases, protocols } from "../action/envelope.ts";
import type { Mismatch } from "../action/explanation.ts";
import { compileGlob, type Glob } from "../action/glob.ts";
import type { Transport } from "../action/principal.ts";
import { type Role, roles } from "../action/role.ts";
import { didYouMean } from "../action/suggestion.ts";
import type { YamlNode } from "../config/document.ts";
import type { FaultList } from "../config/fault.ts";
import { memberOf } from "./extension-file.ts";

const transports = ["http", "sse"] as const satisfies readonly Transport[];

export const nameKeys = ["tool", "target", "principal.key_id", "tenant"] as const;
export type NameKey = (typeof nameKeys)[number];

/** The kinds of facts that a match can name; `calls`: the tool calls of a model's answer; `none`: an action without any. */
const kindChoices = [...factKinds, "calls", "none"] as const;
type KindChoice = (typeof kindChoices)[number];

/** The `match` of a rule, tested before any expression. Every key must agree. */
export interface Match {
  readonly phases: readonly Phase[];
  readonly protocols: readonly Protocol[];
  readonly capabilities: readonly Capability[];
  readonly roles: readonly Role[];
  readonly transports: readonly Transport[];
  readonly effects: readonly ActionEffect[];
  /** One of them must be there; null: any action. */
  readonly kinds: readonly KindChoice[] | null;
  /** Globs by name; a name without an entry matches anything. */
  readonly names: ReadonlyMap<NameKey, readonly Glob[]>;
  /** Equal for two matches with the same meaning. */
  readonly identity: string;
}

/** The expected values of a key that a mismatch lists. */
const maxNamed = 8;

/**
 * Reads a rule's checked `match`; none means every action of phase `input`. A value is a name, a glob or a list of them; of a
 * key with few values, `!` before one excludes it. What no action can match is a fault: the rule would look like protection.
 */
export function parseMatch(node: YamlNode | undefined, faults: FaultList): Match {
  const choices = <T extends string>(key: string, all: readonly T[], fallback: readonly T[]): readonly T[] => {
    const value = node && memberOf(node, key);
    return value === undefined ? fallback : expandChoices(key, value, all, faults);
  };
  const names = new Map<NameKey, readonly Glob[]>();
  for (const key of nameKeys) {
    const value = node && memberOf(node, key);
    if (value !== undefined)
      names.set(
        key,
        parseTexts(key, value, faults).map(({ text }) => compileGlob(text)),
      );
  }
  const parts = {
    phases: choices("phase", phases, ["input"]),
    protocols: choices("protocol", protocols, protocols),
    capabilities: choices("capability", capabilities, capabilities),
    roles: choices("principal.role", roles, roles),
    transports: choices("session.transport", transports, transports),
    effects: choices("effect", actionEffects, actionEffects),
    kinds: parseKinds(node && memberOf(node, "fact"), faults),
  };
  return { ...parts, names, identity: identify(parts, names) };
}

function parseKinds(value: YamlNode | undefined, faults: FaultList): readonly KindChoice[] | null {
  if (value === undefined) return null;
  for (const { text, node } of parseTexts("fact", value, faults)) {
    // Beside the other kinds of an action, an excluded one would still be there.
    if (text.startsWith("!"))
      faults.addAt(node.place, "expected kinds of facts, got an excluded one: write `unless: has(facts.…)`");
  }
  return expandChoices("fact", value, kindChoices, faults);
}

interface PlacedText {
  readonly text: string;
  readonly node: YamlNode;
}

function parseTexts(key: string, value: YamlNode, faults: FaultList): readonly PlacedText[] {
  const nodes = value.kind === "list" ? value.items : [value];
  if (nodes.length === 0)
    faults.addAt(value.place, `expected \`${key}\` to name something, got an empty list: the rule is dead`);
  return nodes.flatMap((each) =>
    each.kind === "scalar" && typeof each.value === "string" ? [{ text: each.value, node: each }] : [],
  );
}

function expandChoices<T extends string>(
  key: string,
  value: YamlNode,
  all: readonly T[],
  faults: FaultList,
): readonly T[] {
  const [chosen, excluded] = [new Set<T>(), new Set<T>()];
  const named = parseTexts(key, value, faults);
  for (const { text, node } of named) {
    const isExcluding = text.startsWith("!");
    const pattern = isExcluding ? text.slice(1) : text;
    const matching = all.filter((choice) => compileGlob(pattern).test(choice));
    for (const choice of matching) (isExcluding ? excluded : chosen).add(choice);
    if (matching.length > 0) continue;
    const hint = didYouMean(pattern, all);
    faults.addAt(node.place, `\`${text.slice(0, 64)}\` matches no ${key} (${all.join(", ")}): the rule is dead${hint}`);
  }
  const isOnlyExcluding = named.every(({ text }) => text.startsWith("!"));
  const left = all.filter((choice) => (isOnlyExcluding || chosen.has(choice)) && !excluded.has(choice));
  if (left.length === 0 && excluded.size > 0)
    faults.addAt(value.place, `\`${key}\` excludes all that it names: the rule is dead`);
  return left;
}

function identify(parts: object, names: Match["names"]): string {
  const globs = Array.from(names, ([key, list]) => [key, list.map((glob) => glob.pattern).toSorted()]);
  return JSON.stringify([parts, globs]);
}

/** The action's value of a name key of `match`. */
export function nameOf(action: ActionEnvelope, key: NameKey): string {
  if (key === "principal.key_id") return action.principal.keyId;
  return action[key];
}

/**
 * Returns true where a rule also judges the tool calls that a model's answer asks for: one of phase `input` that names kinds of
 * facts holds for a command, whether an agent or a model thought of it.
 */
export function judgesCalls({ phases, protocols, kinds }: Match): boolean {
  return requiresFacts(kinds) && phases.includes("input") && protocols.includes("model");
}

/**
 * Returns true where a rule reads the text of answers. A model's answer has facts of its tool calls alone, and they wait for
 * the end of a stream as they are.
 */
export function readsAnswers({ phases, protocols, kinds }: Match, protocol: Protocol): boolean {
  if (protocol === "model" && requiresFacts(kinds)) return false;
  return phases.includes("output") && protocols.includes(protocol);
}

function requiresFacts(kinds: Match["kinds"]): boolean {
  return kinds !== null && !kinds.includes("none");
}

/** The phases of a rule for an action: those of its match, and `output` where it judges the calls of a model's answer. */
export function phasesFor(match: Match, { protocol, facts }: ActionEnvelope): readonly Phase[] {
  const isAsked = protocol === "model" && facts?.calls !== undefined && judgesCalls(match);
  return isAsked && !match.phases.includes("output") ? [...match.phases, "output"] : match.phases;
}

export function matches(match: Match, action: ActionEnvelope): boolean {
  if (!match.phases.includes(action.phase) && !phasesFor(match, action).includes(action.phase)) return false;
  if (!match.protocols.includes(action.protocol)) return false;
  if (!match.capabilities.includes(action.capability) || !match.roles.includes(action.principal.role)) return false;
  if (!match.transports.includes(action.session.transport)) return false;
  if (!match.effects.includes(action.facts?.effect ?? capabilityEffect[action.capability])) return false;
  if (match.kinds !== null && !hasKind(match.kinds, action.facts)) return false;
  for (const [key, globs] of match.names) {
    const name = nameOf(action, key);
    if (!globs.some((glob) => glob.test(name))) return false;
  }
  return true;
}

function hasKind(kinds: readonly KindChoice[], facts: ActionFacts | undefined): boolean {
  for (const kind of kinds) {
    if (kind === "none" ? kindsOf(facts).length === 0 : facts?.[kind] !== undefined) return true;
  }
  return false;
}

function kindsOf(facts: ActionFacts | undefined): readonly KindChoice[] {
  return kindChoices.filter((kind) => kind !== "none" && facts?.[kind] !== undefined);
}

/** The keys of a match that do not agree with an action; empty where all agree. */
export function mismatches(match: Match, action: ActionEnvelope): readonly Mismatch[] {
  const choices = [
    ["phase", phasesFor(match, action), action.phase],
    ["protocol", match.protocols, action.protocol],
    ["capability", match.capabilities, action.capability],
    ["principal.role", match.roles, action.principal.role],
    ["session.transport", match.transports, action.session.transport],
    ["effect", match.effects, action.facts?.effect ?? capabilityEffect[action.capability]],
  ] as const;
  const others = choices.flatMap(([key, expected, got]) =>
    (expected as readonly string[]).includes(got) ? [] : [{ key, expected: expected.slice(0, maxNamed), got }],
  );
  const { kinds } = match;
  const kindsFault =
    kinds === null || hasKind(kinds, action.facts)
      ? []
      : [{ key: "fact", expected: kinds.slice(0, maxNamed), got: kindsOf(action.facts).join(", ") || "none" }];
  const names = Array.from(match.names, ([key, globs]) => ({ key, globs, got: nameOf(action, key) }));
  return [
    ...others,
    ...kindsFault,
    ...names
      .filter(({ globs, got }) => !globs.some((glob) => glob.test(got)))
      .map(({ key, globs, got }) => ({ key, expected: globs.slice(0, maxNamed).map(({ pattern }) => pattern), got })),
  ];
}
