import { isUtf8 } from "node:buffer";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { parseStrictJson } from "../../action/strict-json.ts";
import { didYouMeanHint } from "../../config/check.ts";
import type { FaultList, Place } from "../../config/fault.ts";
import type { Cedar, EntityJson } from "./library.ts";
import { gatewayActions } from "./policy-text.ts";
import { type RecordShape, readShape } from "./shape.ts";

const textFile = "schema.cedarschema";
const jsonFile = "schema.cedarschema.json";
const entitiesFile = "entities.json";

/** One entity type of the gateway's requests. */
export interface EntityType {
  readonly attributes: RecordShape;
  readonly parents: ReadonlySet<string>;
}

/** A schema, with what of an action it asks for. */
export interface CedarSchema {
  readonly text: string;
  /** The context of each action that it declares. */
  readonly contexts: ReadonlyMap<string, RecordShape>;
  readonly agent: EntityType;
  readonly tool: EntityType;
}

type Files = ReadonlyMap<string, Buffer>;

/** Reads the schema of a folder. Returns undefined where it has a fault. */
export function readSchema(cedar: Cedar, files: Files, faults: FaultList): CedarSchema | undefined {
  const found = [textFile, jsonFile].filter((name) => files.has(name));
  const [file = textFile] = found;
  const add = (message: string): undefined => {
    faults.addAt({ file, line: 1, column: 1 }, message);
    return undefined;
  };
  if (found.length !== 1) return add(`expected either \`${textFile}\` or \`${jsonFile}\`, got ${found.length} of them`);
  const bytes = files.get(file) as Buffer;
  if (!isUtf8(bytes)) return add("expected UTF-8, got invalid bytes");
  const text = file === textFile ? bytes.toString("utf8") : textOfJson(cedar, bytes, add);
  if (text === undefined) return undefined;
  const resolved = cedar.schemaToJsonWithResolvedTypes(text);
  if (resolved.type === "failure") {
    for (const { message, help, sourceLocations = [] } of resolved.errors) {
      const place = file === textFile ? placeAt(text, sourceLocations[0]?.start ?? 0) : { file, line: 1, column: 1 };
      faults.addAt(place, help === null ? message : `${message}; ${help}`);
    }
    return undefined;
  }
  const json = resolved.json as unknown as JsonObject;
  const others = Object.keys(json).filter((name) => name !== "");
  if (others.length > 0) return add(`expected no namespaces, got \`${others[0]}\``);
  try {
    return interpret(text, isJsonObject(json[""]) ? json[""] : {}, add);
  } catch (error) {
    if (error instanceof RangeError) return add(error.message);
    throw error;
  }
}

function textOfJson(cedar: Cedar, bytes: Buffer, add: (message: string) => undefined): string | undefined {
  let json: Json;
  try {
    json = readJson(bytes);
  } catch (error) {
    return add(String(error instanceof Error ? error.message : error));
  }
  const answer = cedar.schemaToText(json as never);
  return answer.type === "success" ? answer.text : add(answer.errors.map(({ message }) => message).join("; "));
}

function readJson(bytes: Buffer): Json {
  return parseStrictJson(bytes, { depth: 64, nodes: 100_000, stringLength: 65_536, reader: "exact" });
}

function placeAt(text: string, start: number): Place {
  const before = Buffer.from(text).subarray(0, start).toString("utf8").split("\n");
  return { file: textFile, line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

const noMembers: RecordShape = { kind: "record", members: [] };

function interpret(text: string, json: JsonObject, add: (message: string) => undefined): CedarSchema | undefined {
  const commonTypes = memberOf(json, "commonTypes");
  const entityTypes = memberOf(json, "entityTypes");
  const entityType = (name: string): EntityType => {
    const type = memberOf(entityTypes, name);
    const shape = type.shape === undefined ? noMembers : readShape(type.shape, commonTypes);
    if (shape.kind !== "record") throw new RangeError(`expected \`${name}\` to be a record`);
    const parents = Array.isArray(type.memberOfTypes) ? type.memberOfTypes.map(String) : [];
    return { attributes: shape, parents: new Set(parents) };
  };
  const missing = ["Agent", "Tool"].filter((name) => !Object.hasOwn(entityTypes, name));
  if (missing.length > 0) return add(`expected the entity type \`${missing[0]}\`, got no such type`);
  const contexts = new Map<string, RecordShape>();
  for (const [name, action] of Object.entries(memberOf(json, "actions"))) {
    const appliesTo = isJsonObject(action) ? action.appliesTo : undefined;
    const { principalTypes, resourceTypes, context } = isJsonObject(appliesTo) ? appliesTo : {};
    // An action that applies to nothing is a group of others.
    if (isEmptyList(principalTypes) && isEmptyList(resourceTypes)) continue;
    if (!gatewayActions.includes(name))
      return add(`expected one of the gateway's actions, got \`${name}\`${didYouMeanHint(name, gatewayActions)}`);
    if (!isListWith(principalTypes, "Agent") || !isListWith(resourceTypes, "Tool"))
      return add(`expected the action \`${name}\` to apply to principal \`Agent\` and resource \`Tool\``);
    const shape = context === undefined ? noMembers : readShape(context, commonTypes);
    if (shape.kind !== "record") throw new RangeError(`expected the context of \`${name}\` to be a record`);
    contexts.set(name, shape);
  }
  if (contexts.size === 0) return add("expected at least one action, got none");
  return { text, contexts, agent: entityType("Agent"), tool: entityType("Tool") };
}

function memberOf(json: JsonObject, name: string): JsonObject {
  const member = Object.hasOwn(json, name) ? json[name] : undefined;
  return isJsonObject(member) ? member : {};
}

function isEmptyList(value: Json | undefined): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0);
}

function isListWith(value: Json | undefined, item: string): boolean {
  return Array.isArray(value) && value.includes(item);
}

const maxEntities = 10_000;

/** Reads `entities.json` and checks it against the schema; no entities where there is no such file. */
export function readEntities(cedar: Cedar, schema: string, files: Files, faults: FaultList): readonly EntityJson[] {
  const bytes = files.get(entitiesFile);
  if (bytes === undefined) return [];
  const add = (message: string): void => faults.addAt({ file: entitiesFile, line: 1, column: 1 }, message);
  let json: Json;
  try {
    json = readJson(bytes);
  } catch (error) {
    add(String(error instanceof Error ? error.message : error));
    return [];
  }
  if (!Array.isArray(json) || json.length > maxEntities) {
    add(`expected a list of at most ${maxEntities} entities`);
    return [];
  }
  const entities = json as unknown as EntityJson[];
  const answer = cedar.checkParseEntities({ entities, schema });
  if (answer.type === "success") return entities;
  for (const { message, help } of answer.errors) add(help === null ? message : `${message}; ${help}`);
  return [];
}
