import type { CelValue } from "@bufbuild/cel";
import type { ActionEnvelope, Phase } from "../../kernel/envelope.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { factsValue, historyValue, sessionShapes, sessionStateValue } from "./session-value.ts";
import { recordShape, type Shape, shapeOf } from "./shape.ts";
import { celRecord, toCelValue } from "./value.ts";

/** The variables an expression may name, with what is known of each. */
export type Scope = ReadonlyMap<string, Shape>;

/** The same variables with the values of one action. Without a prototype: a rule can reach nothing else. */
export type Variables = Readonly<Record<string, CelValue>>;

const everyPhase: Readonly<Record<string, Shape>> = {
  protocol: shapeOf.string,
  phase: shapeOf.string,
  tool: shapeOf.string,
  target: shapeOf.string,
  capability: shapeOf.string,
  tenant: shapeOf.string,
  task: shapeOf.json,
  principal: recordShape({ id: shapeOf.string, role: shapeOf.string, key_id: shapeOf.string }),
  session: recordShape({ id: shapeOf.string, transport: shapeOf.string, label: shapeOf.string }),
  client: recordShape({ name: shapeOf.string, version: shapeOf.string, address: shapeOf.string }),
  tool_definition: recordShape({ digest: shapeOf.string, annotations: shapeOf.json }),
  now: shapeOf.time,
  ticket: recordShape({ id: shapeOf.string, standing: shapeOf.string }),
  ...sessionShapes,
};

const ofCall: Readonly<Record<string, Shape>> = {
  args: shapeOf.json,
  arguments: shapeOf.json,
  continuation: shapeOf.json,
};

/** Which variables exist in one phase only; for the message that says so. */
const byPhase: Readonly<Record<Phase, Readonly<Record<string, Shape>>>> = {
  list: {},
  input: ofCall,
  output: { ...ofCall, output: shapeOf.json },
};

/** Why a name is not in a scope, where another phase has it. */
export function phasesWith(name: string): readonly Phase[] {
  return (Object.keys(byPhase) as Phase[]).filter((phase) => Object.hasOwn(byPhase[phase], name));
}

/** What an expression of a rule may name, where the rule is asked in all of `phases`. */
export function ruleScope(phases: readonly Phase[], settings: Shape, data: Shape): Scope {
  const own = Object.entries({ ...byPhase.output }).filter(([name]) =>
    phases.every((phase) => Object.hasOwn(byPhase[phase], name)),
  );
  return new Map([...Object.entries(everyPhase), ...own, ["settings", settings], ["data", data]]);
}

/** The pack's own variables, converted once. */
export interface PackVariables {
  readonly settings: CelValue;
  readonly data: CelValue;
}

export function packVariables(settings: JsonObject, data: JsonObject): PackVariables {
  return { settings: toCelValue(settings), data: toCelValue(data) };
}

/**
 * The variables of one action. `now` is the action's own time, so the same envelope always gives the same verdict.
 * What an action lacks is an empty map: `has(tool_definition.digest)` asks without an error.
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
    principal: celRecord({ id: principal.id, role: principal.role, key_id: principal.keyId }),
    session: toCelValue(session as unknown as JsonObject),
    client: toCelValue(client as unknown as JsonObject),
    continuation: toCelValue(action.continuation ?? {}),
    tool_definition: toCelValue((action.tool_definition ?? {}) as unknown as JsonObject),
    ticket: celRecord({ id: action.ticket?.id ?? "", standing: action.ticket?.standing ?? "none" }),
    settings: pack.settings,
    data: pack.data,
  });
  if (action.output !== undefined) variables.output = toCelValue(action.output);
  // Made where the first rule reads them, which most actions have none for.
  for (const [name, make] of Object.entries({ now, ...sessionValues })) {
    let made: CelValue | undefined;
    Object.defineProperty(variables, name, { get: () => (made ??= make(action)), enumerable: true });
  }
  return variables;
}

const sessionValues = { facts: factsValue, session_state: sessionStateValue, history: historyValue };
