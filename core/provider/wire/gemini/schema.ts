import { isJsonObject, type Json, type JsonObject } from "../../../action/json.ts";

const counts: ReadonlySet<string> = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);
const countText = /^\d{1,15}$/;

/**
 * Writes a schema of the Gemini API, a dialect of OpenAPI 3.0, as JSON Schema: types in lower case, `nullable` as a type,
 * counts as numbers. Members that JSON Schema shares or does not know stay; `propertyOrdering` is a hint and is dropped.
 */
export function jsonSchema(schema: JsonObject): JsonObject {
  const isNullable = schema.nullable === true;
  const members = Object.entries(schema).flatMap(([name, value]): readonly (readonly [string, Json])[] => {
    if (name === "nullable" || name === "propertyOrdering" || value === "TYPE_UNSPECIFIED") return [];
    return [[name, memberOf(name, value, isNullable)]];
  });
  return Object.fromEntries(members);
}

function memberOf(name: string, value: Json, isNullable: boolean): Json {
  if (name === "type" && typeof value === "string") {
    const type = value.toLowerCase();
    return isNullable && type !== "null" ? [type, "null"] : type;
  }
  if (name === "enum" && Array.isArray(value) && isNullable) return [...(value as readonly Json[]), null];
  if (counts.has(name) && typeof value === "string" && countText.test(value)) return Number(value);
  if (name === "properties" || name === "$defs" || name === "defs") return eachMember(value);
  if (name === "items" || name === "additionalProperties") return schemaOf(value);
  if ((name === "anyOf" || name === "prefixItems") && Array.isArray(value)) return value.map(schemaOf);
  return value;
}

function eachMember(value: Json): Json {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, schemaOf(schema)]));
}

function schemaOf(value: Json): Json {
  return isJsonObject(value) ? jsonSchema(value) : value;
}
