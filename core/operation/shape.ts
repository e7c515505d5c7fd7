import { GatewayError } from "../action/error.ts";
import type { Json, JsonObject } from "../action/json.ts";
import type { Answer } from "./operation.ts";

/** A JSON Schema of an object: all of its members are there but those named in `optional`. */
export function object(
  properties: Readonly<Record<string, JsonObject>>,
  optional: readonly string[] = [],
  more: JsonObject = {},
): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, ...(required.length === 0 ? {} : { required }), ...more };
}

/** An object of a request: of what nobody knows, nothing may stand in it. */
export function closed(properties: Readonly<Record<string, JsonObject>>, optional: readonly string[] = []): JsonObject {
  return object(properties, optional, { additionalProperties: false });
}

export function list(items: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: "array", items, ...more };
}

export function oneOf(words: readonly string[], more: JsonObject = {}): JsonObject {
  return { type: "string", enum: words, ...more };
}

/** Text of so many characters. */
export function text(least: number, most: number, description: string): JsonObject {
  return { type: "string", minLength: least, maxLength: most, description };
}

/** Text of at most so many characters that is not blank throughout. */
export function words(most: number, description: string): JsonObject {
  return { type: "string", maxLength: most, pattern: "\\S", description };
}

export function nullable(schema: JsonObject): JsonObject {
  return { anyOf: [schema, { type: "null" }] };
}

/** A schema that stands among the document's components by its name. */
export function ref(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}

/** One page of a list. */
export function page(items: JsonObject, more: Readonly<Record<string, JsonObject>> = {}): JsonObject {
  return object({ items: list(items), next: cursorOut, ...more });
}

/** An answer of 200 in JSON. */
export function answers(description: string, schema: JsonObject): Answer {
  return { status: 200, description, content: { "application/json": schema } };
}

export function constant(value: Json): JsonObject {
  return { const: value };
}

const cursorOut: JsonObject = {
  anyOf: [{ type: "string" }, { type: "null" }],
  description: "where the next page begins; null after the last",
};

export const anyText: JsonObject = { type: "string" };
export const anyObject: JsonObject = { type: "object", additionalProperties: true };
export const flag: JsonObject = { type: "boolean" };
export const count: JsonObject = { type: "integer", minimum: 0 };
export const points: JsonObject = { type: "integer", minimum: 0, maximum: 100, description: "0 to 100" };
export const time: JsonObject = { type: "string", format: "date-time", description: "RFC 3339, UTC" };
export const texts: JsonObject = list(anyText);

export interface Page {
  readonly limit: number;
  readonly cursor?: string;
}

export const maxPage = 500;
export const usualPage = 50;
export const maxCursor = 512;
const cursorShape = /^[\x21-\x7e]{1,512}$/;

/** Throws INVALID_PARAMS. */
export function checkPage(limit: number, cursor: unknown): Page {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPage) {
    throw new GatewayError("INVALID_PARAMS", `expected \`limit\` to be an integer from 1 to ${maxPage}`);
  }
  if (cursor === undefined) return { limit };
  if (typeof cursor !== "string" || !cursorShape.test(cursor)) {
    throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
  }
  return { limit, cursor };
}
