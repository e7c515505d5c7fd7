import { type CelInput, type CelMap, type CelValue, celList, celMap } from "@bufbuild/cel";
import type { Json, JsonObject } from "../../kernel/json.ts";

/**
 * A JSON value as CEL sees it. Objects are wrapped, not copied: a large argument costs only what a rule reads of it.
 * The library's own conversion asks `value.constructor`, which a caller's JSON may name; ours never does.
 */
export function toCelValue(value: Json): CelValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return celList(value.map(toCelValue));
  return celMap(new JsonMap(value as JsonObject));
}

/** A record with named fields, each already a CEL value. */
export function celRecord(fields: Readonly<Record<string, CelValue>>): CelMap {
  return celMap(new Map<string, CelInput>(Object.entries(fields)));
}

/** A JSON object as a map from its own keys; each member is converted when it is first read. */
class JsonMap implements ReadonlyMap<string, CelValue> {
  readonly #object: JsonObject;
  readonly #read = new Map<string, CelValue>();
  #names: readonly string[] | undefined;

  constructor(object: JsonObject) {
    this.#object = object;
  }

  get size(): number {
    return this.#keys.length;
  }

  get(key: string): CelValue | undefined {
    const read = this.#read.get(key);
    if (read !== undefined) return read;
    if (typeof key !== "string" || !Object.hasOwn(this.#object, key)) return undefined;
    const value = toCelValue(this.#object[key] as Json);
    this.#read.set(key, value);
    return value;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  forEach(visit: (value: CelValue, key: string, map: ReadonlyMap<string, CelValue>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }

  *entries(): MapIterator<[string, CelValue]> {
    for (const key of this.#keys) yield [key, this.get(key) as CelValue];
  }

  keys(): MapIterator<string> {
    return this.#keys.values();
  }

  *values(): MapIterator<CelValue> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[string, CelValue]> {
    return this.entries();
  }

  get #keys(): readonly string[] {
    this.#names ??= Object.keys(this.#object);
    return this.#names;
  }
}
