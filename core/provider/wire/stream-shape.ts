import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";

/** A place in an event that holds text of the answer. */
export interface TextSite {
  readonly holder: JsonObject;
  readonly key: string;
}

/** An object where there must be one; a null or nothing is an empty one. */
export function objectAt(value: Json | undefined, path: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw invalid(path, "an object");
  return value;
}

/** A list of objects; a null or nothing is an empty one. */
export function objectsAt(value: Json | undefined, path: string): readonly JsonObject[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) throw invalid(path, "a list of objects");
  return value as readonly JsonObject[];
}

/** A whole number from zero to below a bound. */
export function indexAt(value: Json | undefined, path: string, bound: number): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= bound) {
    throw invalid(path, `a whole number below ${bound}`);
  }
  return value as number;
}

export function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

export function invalid(path: string, expected: string): GatewayError {
  return new GatewayError("PROVIDER_INVALID", `expected \`${path}\` to be ${expected}`);
}
