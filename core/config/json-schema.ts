import type { JsonObject } from "../kernel/json.ts";
import { trustSchema } from "./extension-schema.ts";
import type { Field, ObjectField } from "./field.ts";
import { type FormatName, formats } from "./format.ts";
import { fileSchema } from "./schema.ts";

const dialect = "https://json-schema.org/draft/2020-12/schema";

/**
 * The configuration file as JSON Schema 2020-12, for editors: it refuses nothing that the gateway takes. What the gateway
 * asks beyond it, such as rules across keys, is for `loadConfig` to say.
 */
export function configJsonSchema(): JsonObject {
  return { $schema: dialect, title: "Configuration of the gateway", ...schemaOf(fileSchema) };
}

/** The same of the trust policy. */
export function trustJsonSchema(): JsonObject {
  return { $schema: dialect, title: "Trust policy of the gateway", ...schemaOf(trustSchema) };
}

function schemaOf(field: Field): JsonObject {
  const { description, default: fallback } = field;
  const usual = fallback === undefined || fallback === null ? {} : { default: fallback as JsonObject };
  return { description, ...usual, ...shapeOf(field) };
}

function shapeOf(field: Field): JsonObject {
  switch (field.type) {
    case "boolean":
      return { type: "boolean" };
    case "integer":
      return { type: "integer", minimum: field.min, maximum: field.max };
    case "string":
      return { type: "string", ...patternOf(field.format) };
    case "choice":
      return { type: "string", enum: field.values };
    case "list":
      return { type: "array", ...(field.whenEmpty === undefined ? {} : { minItems: 1 }), items: schemaOf(field.of) };
    case "map":
      return { type: "object", propertyNames: patternOf(field.key), additionalProperties: schemaOf(field.of) };
    case "object":
      return objectShape(field);
    case "json":
      return { type: "object" };
  }
}

function patternOf(format: FormatName): JsonObject {
  const { pattern } = formats[format];
  return pattern === undefined ? {} : { pattern };
}

function objectShape({ fields }: ObjectField): JsonObject {
  const members = Object.entries(fields);
  const required = members.filter(([, { required: must, only }]) => must === true && only === undefined);
  const conditions = members.flatMap(([name, member]) => conditionOf(name, member));
  return {
    type: "object",
    properties: Object.fromEntries(members.map(([name, member]) => [name, schemaOf(member)])),
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required: required.map(([name]) => name) }),
    ...(conditions.length === 0 ? {} : { allOf: conditions }),
  };
}

/** A field that belongs to some values of a sibling is refused beside its others. */
function conditionOf(name: string, { required, only }: Field): readonly JsonObject[] {
  if (only === undefined) return [];
  const isOther = { properties: { [only.key]: { not: { enum: only.values } } }, required: [only.key] };
  const isAlone = { anyOf: [{ not: isOther }, { properties: { [name]: false } }] };
  if (required !== true) return [isAlone];
  const fits = { properties: { [only.key]: { enum: only.values } }, required: [only.key] };
  return [isAlone, { anyOf: [{ not: fits }, { required: [name] }] }];
}
