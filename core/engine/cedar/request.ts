import type { ActionEnvelope } from "../../action/envelope.ts";
import type { JsonObject } from "../../action/json.ts";
import { inputOf } from "../input.ts";
import type { EntityGraph } from "./entity-graph.ts";
import type { EntityJson } from "./library.ts";
import type { CedarSchema, EntityType } from "./schema.ts";
import { CedarReader, entityKey } from "./shape.ts";

/** A request of Cedar about one action, with the entities that it can reach. */
export interface CedarRequest {
  readonly principal: { readonly type: string; readonly id: string };
  readonly action: { readonly type: string; readonly id: string };
  readonly resource: { readonly type: string; readonly id: string };
  readonly context: Record<string, EntityJson["attrs"][string]>;
  readonly entities: EntityJson[];
}

/** The action's name in Cedar: a call is named by its capability. */
export function actionName({ phase, capability }: Pick<ActionEnvelope, "phase" | "capability">): string {
  return phase === "input" ? capability : phase === "list" ? "list" : "return";
}

/** `<left>/<right>`: a `/` or `%` of the left part is encoded, so that no two pairs have one name. */
function pairName(left: string, right: string): string {
  return `${left.replace(/[%/]/g, encodeURIComponent)}/${right}`;
}

export function agentName({ tenant, principal }: ActionEnvelope): string {
  return pairName(tenant, principal.keyId);
}

export function toolName({ target, tool }: Pick<ActionEnvelope, "target" | "tool">): string {
  return pairName(target, tool);
}

/**
 * Makes the request of an action whose name the schema declares. Throws EngineError where a member that the schema declares does
 * not have its type.
 */
export function readRequest(action: ActionEnvelope, schema: CedarSchema, graph: EntityGraph): CedarRequest {
  const { tenant, principal, target, tool, protocol, capability, tool_definition: definition } = action;
  const reader = new CedarReader();
  const name = actionName(action);
  const shape = schema.contexts.get(name);
  if (shape === undefined) throw new TypeError("readRequest: expected an action that the schema declares");
  const context = reader.readRecord(inputOf(action), shape, "context");
  const agent = {
    id: agentName(action),
    attributes: { id: principal.id, tenant, role: principal.role, key_id: principal.keyId },
    parents: { Tenant: tenant, Role: principal.role },
  };
  const resource = {
    id: toolName(action),
    attributes: {
      ...{ name: tool, target, protocol, capability, untrusted: action.untrusted === true },
      ...(definition === undefined ? {} : { annotations: definition.annotations }),
    },
    parents: { Target: target },
  };
  const own = [
    makeEntity("Agent", agent, schema.agent, reader, graph),
    makeEntity("Tool", resource, schema.tool, reader, graph),
  ];
  return {
    principal: { type: "Agent", id: agent.id },
    action: { type: "Action", id: name },
    resource: { type: "Tool", id: resource.id },
    context,
    entities: graph.around(own, reader.entities),
  };
}

interface OwnEntity {
  readonly id: string;
  readonly attributes: JsonObject;
  /** Ids by type. */
  readonly parents: Readonly<Record<string, string>>;
}

/** The entity with what the folder says of it. The gateway's attributes come first: a file cannot say another role. */
function makeEntity(
  type: string,
  { id, attributes, parents }: OwnEntity,
  declared: EntityType,
  reader: CedarReader,
  graph: EntityGraph,
): EntityJson {
  const stated = graph.find(entityKey(type, id));
  const members = declared.attributes.members.filter(
    ({ name }) => Object.hasOwn(attributes, name) || !Object.hasOwn(stated?.attrs ?? {}, name),
  );
  const read = reader.readRecord(attributes, { kind: "record", members }, type);
  const known = Object.entries(parents).filter(([parent]) => declared.parents.has(parent));
  return {
    uid: { type, id },
    attrs: { ...stated?.attrs, ...read },
    parents: [...(stated?.parents ?? []), ...known.map(([parent, name]) => ({ type: parent, id: name }))],
    ...(stated?.tags === undefined ? {} : { tags: stated.tags }),
  };
}
