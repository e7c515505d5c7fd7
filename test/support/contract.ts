import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AnySchema, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Json } from "../../core/action/json.ts";
import { repositoryRoot } from "../check/source-tree.ts";

/** A schema of the SDK's contract. */
export function compileSchema(name: string): ValidateFunction {
  const schema: AnySchema = JSON.parse(readFileSync(join(repositoryRoot, `sdk/contract/${name}.schema.json`), "utf8"));
  return new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
}

/** The way to each member and item in a value. */
export function pathsIn(value: Json, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const below = Object.entries(value).flatMap(([key, each]) => pathsIn(each as Json, [...path, key]));
  return path.length === 0 ? below : [path, ...below];
}

/** A copy with another value at a place, or without what was there. */
export function changeAt(value: Json, [key, ...rest]: readonly string[], changed: Json | undefined): Json {
  if (key === undefined) return changed ?? null;
  const list = Array.isArray(value);
  const copy: Record<string, Json> = { ...(value as Record<string, Json>) };
  if (rest.length === 0 && changed === undefined) delete copy[key];
  else copy[key] = rest.length === 0 ? (changed as Json) : changeAt(copy[key] as Json, rest, changed);
  return list ? Object.values(copy) : copy;
}
