import { type CelValue, celList, celMap } from "@bufbuild/cel";
import { capabilityEffect } from "../../../core/action/action-fact.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { SessionState } from "../../../core/action/session-state.ts";
import type { PackVariables } from "../../../core/policy/cel/scope.ts";

/** The state of a new session: used for actions without one. */
const newSession: SessionState = { risk: 0, actions: 0, reviews: 0, tools: 0, new_tool: true, taints: [] };

function factsValue({ facts, capability }: ActionEnvelope): CelValue {
  const without = { hosts: [], paths: [], more: false, effect: capabilityEffect[capability] };
  return toCelValue((facts ?? without) as unknown as JsonObject);
}

function sessionStateValue(action: ActionEnvelope): CelValue {
  const state = action.session_state ?? newSession;
  const taints = withAges(state.taints, action);
  return toCelValue({
    ...state,
    taints,
    untrusted_values: state.untrusted_values ?? [],
    secret_left: state.secret_left ?? 0,
  } as unknown as JsonObject);
}

/** The session's earlier actions, newest first. */
function historyValue(action: ActionEnvelope): CelValue {
  return toCelValue(withAges(action.history ?? [], action));
}

/** Ages relative to the action's own time, so that the same envelope always gives the same ages. */
function withAges(items: readonly { readonly at: number }[], { time }: ActionEnvelope): readonly JsonObject[] {
  const now = Date.parse(time);
  return items.map(({ at, ...item }) => ({ ...item, age: Math.max(0, now - at) / 1_000 }));
}

/**
 * Converts a JSON value to CEL. Objects are wrapped, not copied: a large argument costs only the members that a rule reads.
 * The library's own conversion reads `value.constructor`, which a caller's JSON may define; this one never does.
 */
function toCelValue(value: Json): CelValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return celList(value.map(toCelValue));
  return celMap(new JsonMap(value as JsonObject));
}

/** A JSON object as a map of its own keys; each member is converted when it is first read. */
class JsonMap implements ReadonlyMap<string, CelValue> {
  readonly #object: JsonObject;
  readonly #read: Map<string, CelValue>;
  #names: readonly string[] | undefined;

  constructor(object: JsonObject) {
    this.#object = object;
    this.#read = new Map();
  }

  get size(): number {
    return this.#keys.length;
  }

  get(key: string): CelValue | undefined {
    const read = this.#read.get(key);
    if (read !== undefined) return read;
    if (typeof key !== "string" || !Object.hasOwn(this.#object, key)) return undefined;
    const value = toCelValue(this.#object[key] as Json);
    this.#read.set(key, value);
    return value;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  forEach(visit: (value: CelValue, key: string, map: ReadonlyMap<string, CelValue>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }

  *entries(): MapIterator<[string, CelValue]> {
    this.#names ??= Object.keys(this.#object);
    for (const key of this.#names) yield [key, this.get(key) as CelValue];
  }

  keys(): MapIterator<string> {
    return this.#keys.values();
  }

  *values(): MapIterator<CelValue> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[string, CelValue]> {
    return this.entries();
  }

  get #keys(): readonly string[] {
    this.#names ??= Object.keys(this.#object);
    return this.#names;
  }
}

/** The values of those variables for one action. Without a prototype, so that a rule can reach nothing else. */
export type Variables = Readonly<Record<string, CelValue>>;

/**
 * The variables of one action. `now` is the action's own time, so the same envelope always gives the same verdict.
 * A part that the action lacks is an empty map: `has(tool_definition.digest)` is false, not an error.
 */
export function bindVariables(action: ActionEnvelope, pack: PackVariables, now: () => CelValue): Variables {
  const { principal, session, client } = action;
  const args = toCelValue(action.arguments);
  const variables: Record<string, CelValue> = Object.assign(Object.create(null), {
    protocol: action.protocol,
    phase: action.phase,
    tool: action.tool,
    target: action.target,
    capability: action.capability,
    tenant: action.tenant,
    task: action.task,
    args,
    arguments: args,
    principal: toCelValue({ id: principal.id, role: principal.role, key_id: principal.keyId }),
    session: toCelValue(session as unknown as JsonObject),
    client: toCelValue(client as unknown as JsonObject),
    continuation: toCelValue(action.continuation ?? {}),
    tool_definition: toCelValue((action.tool_definition ?? {}) as unknown as JsonObject),
    ticket: toCelValue({ id: action.ticket?.id ?? "", standing: action.ticket?.standing ?? "none" }),
    settings: toCelValue(pack.settings),
    data: toCelValue(pack.data),
  });
  if (action.output !== undefined) variables.output = toCelValue(action.output);
  // Computed when a rule first reads them; most actions never need them.
  for (const [name, compute] of Object.entries({ now, ...sessionValues })) {
    let computed: CelValue | undefined;
    Object.defineProperty(variables, name, { get: () => (computed ??= compute(action)), enumerable: true });
  }
  return variables;
}

const sessionValues = { facts: factsValue, session_state: sessionStateValue, history: historyValue };
