import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { isJsonObject, type JsonObject } from "../action/json.ts";
import { compilePattern } from "./cel/pattern.ts";
import { recordShape, type Shape, shapes } from "./cel/syntax.ts";

/** The settings of a pack or plugin. */
export interface SettingsSchema {
  readonly shape: Shape;
  /** Applies the operator's values to the defaults, member by member. Throws RangeError with every fault. */
  merge(settings: JsonObject): JsonObject;
}

/** Runs a schema's patterns on RE2: packs may use no other regular expressions. */
const regExp = Object.assign((source: string) => compilePattern(source, false), { code: "compilePattern" });

// A schema is compiled for one value: optimizing its code would take longer than that saves.
const options = { strict: true, allErrors: true, logger: false, code: { regExp, optimize: false } } as const;
/** Checks schemas against the one of schemas, which takes longer to compile than all of theirs. */
let schemaChecker: Ajv | undefined;

/**
 * Compiles a settings schema and checks its defaults. The schema must have `type: object` and `additionalProperties:
 * false`, so that a misspelt setting is refused; remote references are never fetched. Throws RangeError with the
 * reason.
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

/** Merges settings with the defaults; reports those that do not fit and returns none then. */
export function mergeSettings(
  schema: SettingsSchema,
  settings: JsonObject,
  onFault: (message: string) => void,
): JsonObject {
  try {
    return schema.merge(settings);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    onFault(error.message);
    return {};
  }
}

/** The schema of a pack without settings. */
export function noSettings(): SettingsSchema {
  return compileSettings({ type: "object", additionalProperties: false }, {});
}

function compileSchema(schema: JsonObject): ValidateFunction {
  try {
    schemaChecker ??= new Ajv(options);
    schemaChecker.validateSchema(schema, true);
    return new Ajv({ ...options, validateSchema: false }).compile(schema);
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
