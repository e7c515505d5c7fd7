import type { JsonTypeBuilder, SchemaOptions, TProperties, TSchema } from "@sinclair/typebox";

/** Marks the schema of a member that may be left out; as a symbol it is no part of the JSON Schema. */
const optionalMark = Symbol("optional");

export function isOptional(schema: TSchema): boolean {
  return optionalMark in schema;
}

type TypeBuilder = Pick<
  JsonTypeBuilder,
  | "Array"
  | "Boolean"
  | "Integer"
  | "Literal"
  | "Null"
  | "Object"
  | "Optional"
  | "Partial"
  | "String"
  | "Union"
  | "Unknown"
  | "Unsafe"
>;

const builder = {
  Array: (items: TSchema, options?: SchemaOptions) => ({ ...options, type: "array", items }),
  Boolean: (options?: SchemaOptions) => ({ ...options, type: "boolean" }),
  Integer: (options?: SchemaOptions) => ({ ...options, type: "integer" }),
  Literal: (value: unknown, options?: SchemaOptions) => ({ ...options, const: value, type: typeof value }),
  Null: (options?: SchemaOptions) => ({ ...options, type: "null" }),
  Object: buildObject,
  Optional: (schema: TSchema) => ({ ...schema, [optionalMark]: true }),
  Partial: ({ required: _, properties, ...options }: TSchema) => {
    const members = Object.entries<TSchema>(properties);
    return buildObject(Object.fromEntries(members.map(([key, member]) => [key, builder.Optional(member)])), options);
  },
  String: (options?: SchemaOptions) => ({ ...options, type: "string" }),
  Union: (anyOf: readonly TSchema[], options?: SchemaOptions) => ({ ...options, anyOf }),
  Unknown: (options?: SchemaOptions) => ({ ...options }),
  Unsafe: (options?: SchemaOptions) => ({ ...options }),
};

/**
 * TypeBox's builder of JSON Schemas with an inferred type, as far as we use it: its types, and a few functions of ours, as
 * loading its two hundred modules was a third of the time of a short command.
 */
// INVARIANT: each function makes the JSON Schema that the builder of the same name makes.
export const Type = builder as unknown as TypeBuilder;

function buildObject(properties: TProperties | Record<string, object>, options?: SchemaOptions): object {
  const required = Object.keys(properties).filter((key) => !isOptional(properties[key] as TSchema));
  return { ...options, type: "object", ...(required.length === 0 ? {} : { required }), properties };
}
