import type { ErrorObject } from "ajv";
import { GatewayError } from "../action/error.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { typeName } from "../action/json-rpc.ts";
import { didYouMean } from "../action/suggestion.ts";
import { escapeHidden } from "../action/visible-text.ts";

const maxQuoted = 64;

/**
 * INVALID_PARAMS for a validation error: the place below `where`, the expected value and the actual one, of bounded
 * length and with hidden characters escaped. The validator must be `verbose`.
 */
export function invalidParams(where: string, error: ErrorObject | undefined): GatewayError {
  if (error === undefined) return new GatewayError("INVALID_PARAMS", `expected \`${where}\` to be something else`);
  const { keyword, params, parentSchema, instancePath } = error;
  const schema = parentSchema as JsonObject;
  const place = instancePath === "" ? `the ${where}` : quote(instancePath.slice(1));
  if (keyword === "additionalProperties") return unknownName(place, schema, String(params.additionalProperty));
  if (keyword === "required") return missing(place, schema, String(params.missingProperty));
  return invalid(`expected ${place} to be ${schema.description ?? expectedBy(schema)}, got ${gotBy(error)}`);
}

function quote(text: string): string {
  return `\`${escapeHidden(text.slice(0, maxQuoted).toWellFormed())}\``;
}

function unknownName(place: string, { properties = {} }: JsonObject, name: string): GatewayError {
  const known = Object.keys(properties as JsonObject);
  const expected = known.length === 0 ? "nothing" : `only ${known.map((each) => `\`${each}\``).join(", ")}`;
  return invalid(`expected ${expected} in ${place}, got ${quote(name)}${didYouMean(name, known)}`);
}

function missing(place: string, { properties = {} }: JsonObject, name: string): GatewayError {
  const { description } = (properties as Readonly<Record<string, JsonObject>>)[name] ?? {};
  const what = typeof description === "string" ? ` (${description})` : "";
  return invalid(`expected \`${name}\`${what} in ${place}, got nothing`);
}

const typeWords: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "`true` or `false`",
  integer: "a whole number",
  object: "an object",
  string: "a text",
};

function expectedBy({ enum: words, type }: JsonObject): string {
  if (Array.isArray(words)) return `one of ${words.join(", ")}`;
  return typeWords[String(type)] ?? "something else";
}

function gotBy({ keyword, data, params }: ErrorObject): string {
  if (keyword === "minLength" || keyword === "maxLength") return `${[...(data as string)].length} characters`;
  if (keyword === "maxItems" || keyword === "minItems") return `${(data as readonly Json[]).length} of them`;
  if (keyword === "uniqueItems") return quote(String((data as readonly Json[])[Number(params.i)])).concat(" twice");
  return typeof data === "string" || typeof data === "number" ? quote(String(data)) : typeName(data as Json);
}

function invalid(detail: string): GatewayError {
  return new GatewayError("INVALID_PARAMS", detail);
}
