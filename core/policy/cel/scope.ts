import { capabilityEffect } from "../../action/action-fact.ts";
import type { ActionEnvelope, Phase } from "../../action/envelope.ts";
import type { JsonObject } from "../../action/json.ts";
import type { SessionState } from "../../action/session-state.ts";
import { factsShape } from "./fact-shape.ts";
import type { LeafCache } from "./leaf.ts";
import { recordShape, type Shape, shapes } from "./syntax.ts";
import { parseTimestamp } from "./time.ts";
import { CelFailure, type CelResult, type CelValue } from "./value.ts";

const listOf = (element: Shape): Shape => ({ kind: "list", element });
const texts = listOf(shapes.string);

/** The shapes of an action's facts, of its session's state and of the session's earlier actions. Ages are in seconds. */
const sessionShapes: Readonly<Record<"facts" | "session_state" | "history", Shape>> = {
  facts: factsShape,
  session_state: recordShape({
    risk: shapes.double,
    actions: shapes.double,
    reviews: shapes.double,
    tools: shapes.double,
    new_tool: shapes.bool,
    taints: listOf(
      recordShape({
        name: shapes.string,
        target: shapes.string,
        tool: shapes.string,
        action: shapes.string,
        age: shapes.double,
      }),
    ),
    untrusted_values: texts,
    secret_left: shapes.double,
  }),
  history: listOf(
    recordShape({
      age: shapes.double,
      protocol: shapes.string,
      tool: shapes.string,
      target: shapes.string,
      capability: shapes.string,
      decision: shapes.string,
      dispatched: shapes.bool,
      hosts: texts,
      paths: texts,
    }),
  ),
};

/** The state of a new session: used for actions without one. */
const newSession: SessionState = { risk: 0, actions: 0, reviews: 0, tools: 0, new_tool: true, taints: [] };

/** Ages relative to the action's own time, so that the same envelope always gives the same ages. */
function withAges(items: readonly { readonly at: number }[], { time }: ActionEnvelope): readonly JsonObject[] {
  const now = Date.parse(time);
  return items.map(({ at, ...item }) => ({ ...item, age: Math.max(0, now - at) / 1_000 }));
}

/** The variables that an expression may name, with their shapes. */
export type Scope = ReadonlyMap<string, Shape>;

const definitionMembers = { digest: shapes.string, annotations: shapes.json, findings: texts };

/** Listing a tool is the one phase in which its whole definition is judged. */
const wholeDefinition: Shape = recordShape({
  ...definitionMembers,
  title: shapes.string,
  description: shapes.string,
  input_schema: shapes.json,
  output_schema: shapes.json,
});

const everyPhase: Readonly<Record<string, Shape>> = {
  protocol: shapes.string,
  phase: shapes.string,
  tool: shapes.string,
  target: shapes.string,
  capability: shapes.string,
  tenant: shapes.string,
  task: shapes.json,
  principal: recordShape({ id: shapes.string, role: shapes.string, key_id: shapes.string }),
  session: recordShape({ id: shapes.string, transport: shapes.string, label: shapes.string }),
  client: recordShape({ name: shapes.string, version: shapes.string, address: shapes.string }),
  tool_definition: recordShape(definitionMembers),
  now: shapes.time,
  ticket: recordShape({ id: shapes.string, standing: shapes.string }),
  ...sessionShapes,
};

const ofCall: Readonly<Record<string, Shape>> = {
  args: shapes.json,
  arguments: shapes.json,
  continuation: shapes.json,
};

/** The variables that exist in some phases only. */
const byPhase: Readonly<Record<Phase, Readonly<Record<string, Shape>>>> = {
  list: {},
  input: ofCall,
  output: { ...ofCall, output: shapes.json },
};

/** The phases in which a variable exists that not all phases have. */
export function phasesWith(name: string): readonly Phase[] {
  return (Object.keys(byPhase) as Phase[]).filter((phase) => Object.hasOwn(byPhase[phase], name));
}

/** The variables that a rule may name which is evaluated in all of `phases`. */
export function ruleScope(phases: readonly Phase[], settings: Shape, data: Shape): Scope {
  const own = Object.entries({ ...byPhase.output }).filter(([name]) =>
    phases.every((phase) => Object.hasOwn(byPhase[phase], name)),
  );
  const scope = new Map([...Object.entries(everyPhase), ...own, ["settings", settings], ["data", data]]);
  return phases.every((phase) => phase === "list") ? scope.set("tool_definition", wholeDefinition) : scope;
}

/** The pack's own variables. */
export interface PackVariables {
  readonly settings: JsonObject;
  readonly data: JsonObject;
}

/**
 * The variables of one action: its own JSON, not copied. `now` is the action's own time, so the same envelope always
 * gives the same verdict. A part that the action lacks is an empty map: `has(tool_definition.digest)` is false, not an
 * error.
 */
export interface Variables {
  readonly action: ActionEnvelope;
  readonly pack: PackVariables;
  /** The variables of the loops around an expression that is evaluated apart from them. */
  readonly locals: ReadonlyMap<string, CelValue>;
  readonly leaves: LeafCache;
  /** The variables made of the action so far, by name. */
  readonly computed: Map<string, CelResult>;
}

export function variablesOf(action: ActionEnvelope, pack: PackVariables): Variables {
  return { action, pack, locals: new Map(), leaves: new Map(), computed: new Map() };
}

/** The variables with one more, which may shadow another. */
export function withLocal(variables: Variables, name: string, value: CelValue): Variables {
  return { ...variables, locals: new Map(variables.locals).set(name, value) };
}

/** The result of a variable that the action does not have. */
export const unresolved: CelFailure = new CelFailure("unresolved attribute");

type VariableReader = (variables: Variables) => CelResult;

/** Reads a member of the action; `absent` is the variable where the action has no such member. */
function memberReader(member: keyof ActionEnvelope, absent: CelResult = unresolved): VariableReader {
  return ({ action }) => {
    const value = action[member] as CelValue | undefined;
    return value === undefined ? absent : value;
  };
}

/** Reads what `compute` makes of the action, computed when a rule first reads it. */
function computedReader(name: string, compute: (action: ActionEnvelope) => CelResult): VariableReader {
  return ({ action, computed }) => {
    let value = computed.get(name);
    if (value === undefined) {
      value = compute(action);
      computed.set(name, value);
    }
    return value;
  };
}

const none: JsonObject = {};
const noPlaces = { hosts: [], paths: [], more: false };

const readers: Readonly<Record<string, VariableReader>> = {
  protocol: memberReader("protocol"),
  phase: memberReader("phase"),
  tool: memberReader("tool"),
  target: memberReader("target"),
  capability: memberReader("capability"),
  tenant: memberReader("tenant"),
  task: memberReader("task"),
  args: memberReader("arguments"),
  arguments: memberReader("arguments"),
  session: memberReader("session"),
  client: memberReader("client"),
  continuation: memberReader("continuation", none),
  tool_definition: memberReader("tool_definition", none),
  output: memberReader("output"),
  facts: ({ action }) => {
    const facts = action.facts ?? { ...noPlaces, effect: capabilityEffect[action.capability] };
    return facts as unknown as JsonObject;
  },
  principal: computedReader("principal", ({ principal: { id, role, keyId } }) => ({ id, role, key_id: keyId })),
  ticket: computedReader("ticket", ({ ticket }) => ({ id: ticket?.id ?? "", standing: ticket?.standing ?? "none" })),
  now: computedReader("now", ({ time }) => parseTimestamp(time)),
  session_state: computedReader("session_state", (action) => {
    const state = action.session_state ?? newSession;
    const { untrusted_values = [], secret_left = 0 } = state;
    return { ...state, taints: withAges(state.taints, action), untrusted_values, secret_left };
  }),
  // Newest first.
  history: computedReader("history", (action) => withAges(action.history ?? [], action)),
  settings: ({ pack }) => pack.settings,
  data: ({ pack }) => pack.data,
};

/** Returns the reader of a variable: of these alone, so an expression can reach nothing else. */
export function readerOf(name: string): VariableReader {
  return Object.hasOwn(readers, name) ? (readers[name] as VariableReader) : () => unresolved;
}
