import type {
  Static,
  TArray,
  TBoolean,
  TInteger,
  TObject,
  TProperties,
  TSchema,
  TString,
  TUnsafe,
} from "@sinclair/typebox";
import type { JsonObject } from "../action/json.ts";
import type { FormatName } from "./format.ts";
import { isOptional, Type } from "./type.ts";

/**
 * The vocabulary in which files are described: TypeBox schemas, which are JSON Schema with an inferred type. `Static` of
 * a schema is the checked value: every key that has a default is there.
 */

/** Annotations of a schema beyond JSON Schema, for `check.ts`. */
export interface Annotations {
  /** Completes "expected …" in faults, in place of words derived from the schema. */
  readonly expected?: string;
  /** Set where even a wrong value may be a secret: faults give its length only. */
  readonly sensitive?: true;
  /** Set on lists that must not be empty because that could be read as "everyone": what to do instead. */
  readonly whenEmpty?: string;
  /** Set on keys that are allowed only where the sibling `key` has one of `values`. */
  readonly onlyWhere?: SiblingCondition;
}

export interface SiblingCondition {
  readonly key: string;
  readonly values: readonly string[];
}

/** The keywords of `Annotations`, for validators in strict mode. */
export const annotationKeywords: readonly (keyof Annotations)[] = ["expected", "sensitive", "whenEmpty", "onlyWhere"];

interface TextOptions extends Annotations {
  readonly format?: FormatName;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly default?: string;
}

export function string(description: string, options: TextOptions): TString {
  return Type.String({ description, ...options });
}

interface IntegerOptions {
  readonly minimum: number;
  readonly maximum: number;
  readonly default?: number;
}

export function integer(description: string, options: IntegerOptions): TInteger {
  return Type.Integer({ description, ...options });
}

export function flag(description: string, options: { readonly default?: boolean } = {}): TBoolean {
  return Type.Boolean({ description, ...options });
}

/** One word of a closed list. */
export function enumeration<const Word extends string>(
  description: string,
  values: readonly Word[],
  options: { readonly default?: NoInfer<Word> } = {},
): TUnsafe<Word> {
  return Type.Unsafe<Word>({ type: "string", enum: values, description, ...options });
}

interface ListOptions<Item> extends Annotations {
  readonly default?: readonly Item[];
  readonly minItems?: number;
  readonly maxItems?: number;
}

export function list<Item extends TSchema>(
  description: string,
  items: Item,
  options: ListOptions<Static<Item>> = {},
): TArray<Item> {
  const atLeastOne = options.whenEmpty === undefined ? {} : { minItems: 1 };
  return Type.Array(items, { description, ...atLeastOne, ...options });
}

/** A mapping whose keys the author of the file chooses. */
export function map<Value extends TSchema>(
  description: string,
  keyFormat: FormatName,
  values: Value,
  options: { readonly default?: Readonly<Record<string, Static<Value>>> } = {},
): TUnsafe<Record<string, Static<Value>>> {
  const propertyNames = { type: "string", format: keyFormat };
  return Type.Unsafe({ type: "object", description, propertyNames, additionalProperties: values, ...options });
}

/** A JSON object that is checked elsewhere. */
export function jsonObject(description: string, options: { readonly default?: JsonObject } = {}): TUnsafe<JsonObject> {
  return Type.Unsafe<JsonObject>({ type: "object", description, ...options });
}

/**
 * A mapping with exactly these keys: any other is a fault. A key must be given unless it has a default, or is a mapping
 * all of whose keys may be left out.
 */
export function object<Properties extends TProperties>(
  description: string,
  properties: Properties,
): TObject<Properties> {
  const members = Object.entries(properties);
  const required = members.flatMap(([key, member]) =>
    isRequired(member) && member.onlyWhere === undefined ? [key] : [],
  );
  const conditions = members.flatMap(([key, member]) => conditionsOf(key, member));
  return {
    ...Type.Object(properties, { description, additionalProperties: false }),
    required,
    ...(conditions.length === 0 ? {} : { allOf: conditions }),
  };
}

/** Returns whether the key of such a value must be given, where it applies at all. */
export function isRequired(schema: TSchema): boolean {
  if (schema.default !== undefined || isOptional(schema)) return false;
  return schema.type !== "object" || schema.properties === undefined || schema.required.length > 0;
}

/** A key that belongs to some values of a sibling is refused beside its others. */
function conditionsOf(name: string, member: TSchema): readonly JsonObject[] {
  const { onlyWhere } = member as Annotations;
  if (onlyWhere === undefined) return [];
  const { key, values } = onlyWhere;
  const isAlien = { properties: { [key]: { not: { enum: values } } }, required: [key, name] };
  const isFit = { properties: { [key]: { enum: values } }, required: [key] };
  const isGiven = { anyOf: [{ not: isFit }, { required: [name] }] };
  return [{ not: isAlien }, ...(isRequired(member) ? [isGiven] : [])];
}

/** A key that may be left out; its value is then null. */
export function optional<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, default: null });
}

/** A key that is a fault unless the sibling `key` has one of `values`; its value is null where it does not apply. */
export function onlyWhere<Schema extends TSchema>(
  key: string,
  values: readonly string[],
  schema: Schema,
): TUnsafe<Static<Schema> | null> {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, onlyWhere: { key, values } });
}
