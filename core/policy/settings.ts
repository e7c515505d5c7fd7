import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { isJsonObject, type JsonObject } from "../action/json.ts";
import { compilePattern } from "./cel/pattern.ts";
import { recordShape, type Shape, shapes } from "./cel/syntax.ts";

/** What a pack lets its operator tune. */
export interface SettingsSchema {
  readonly shape: Shape;
  /** The defaults with the operator's values in their place, member by member. Throws RangeError with every fault. */
  merge(settings: JsonObject): JsonObject;
}

/** Patterns of a schema run on RE2 as well: a pack brings no other regular expression. */
const regExp = Object.assign((source: string) => compilePattern(source, false), { code: "compilePattern" });

/**
 * Compiles a pack's settings schema and checks its defaults. The schema must be of `type: object` with
 * `additionalProperties: false`, so that a misspelt setting is refused; remote references are never fetched.
 * Throws RangeError that says what is wrong.
 */
export function compileSettings(schema: JsonObject, defaults: JsonObject): SettingsSchema {
  if (schema.type !== "object" || schema.additionalProperties !== false) {
    throw new RangeError("expected `schema` to have `type: object` and `additionalProperties: false`");
  }
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const validate = compileSchema(schema);
  const merge = (settings: JsonObject): JsonObject => {
    const merged = { ...defaults, ...settings };
    if (!validate(merged)) throw new RangeError((validate.errors ?? []).map(describe).join("; "));
    return merged;
  };
  merge({});
  const fields = Object.keys(properties).map((name) => [name, shapes.json] as const);
  return { shape: recordShape(Object.fromEntries(fields)), merge };
}

/** A pack without settings takes none. */
export function noSettings(): SettingsSchema {
  return compileSettings({ type: "object", additionalProperties: false }, {});
}

function compileSchema(schema: JsonObject): ValidateFunction {
  const ajv = new Ajv({ strict: true, allErrors: true, logger: false, code: { regExp } });
  try {
    return ajv.compile(schema);
  } catch (error) {
    throw new RangeError(`not a usable schema: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function describe(error: ErrorObject): string {
  const where = error.instancePath === "" ? "settings" : `settings${error.instancePath}`;
  const name: unknown = error.params.additionalProperty;
  return typeof name === "string" ? `unknown setting \`${name}\`` : `\`${where}\` ${error.message ?? "is invalid"}`;
}
