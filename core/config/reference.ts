import type { TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../action/json.ts";
import { expectedBy } from "./check.ts";
import { fileSchema } from "./file-schema.ts";
import { type FormatName, formats } from "./format.ts";
import { type Annotations, annotationKeywords } from "./schema.ts";
import { trustSchema } from "./trust-schema.ts";

/** One key of a file, its texts in Markdown. */
export interface KeyDescription {
  readonly key: string;
  readonly type: string;
  readonly default: string;
  readonly description: string;
}

/** Every key of the configuration file, in the order of the schema. */
export function configKeys(): readonly KeyDescription[] {
  return describeKeys(fileSchema);
}

/** Every key of the trust policy. */
export function trustKeys(): readonly KeyDescription[] {
  return describeKeys(trustSchema);
}

/** The keys of configuration file and trust policy as a page of Markdown. */
export function configReference(): string {
  const preamble = "`[]` stands for each entry of a list, `<name>` for a key of your choosing.";
  return writeReference("Configuration reference", preamble, fileSchema);
}

export function trustReference(): string {
  return writeReference("Trust policy reference", "The file that `extensions.trust_policy` names.", trustSchema);
}

/** A page of Markdown with one row for each key of a schema, columns aligned. */
export function writeReference(title: string, preamble: string, schema: TSchema): string {
  const keys = describeKeys(schema).map((row) => [`\`${row.key}\``, row.type, row.default, row.description]);
  const rows = [["key", "type", "default", "description"], ...keys];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const [head = "", ...body] = rows.map((row) => tableLine(row.map((cell, at) => cell.padEnd(widths[at] ?? 0))));
  const rule = tableLine(widths.map((width) => "-".repeat(width)));
  return `${[`# ${title}\n\n${preamble}\n`, head, rule, ...body].join("\n")}\n`;
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** Every key of a schema and of the mappings in it, in order; `[]` stands for an entry, `<name>` for a chosen key. */
export function describeKeys(schema: TSchema & Annotations, path = ""): KeyDescription[] {
  if (schema.properties !== undefined) {
    return Object.entries<TSchema>(schema.properties).flatMap(([key, member]) =>
      describeKey(member, path === "" ? key : `${path}.${key}`),
    );
  }
  if (schema.items?.properties !== undefined) return describeKeys(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties !== "object") return [];
  return describeKey(schema.additionalProperties, `${path}.<name>`);
}

function describeKey(schema: TSchema & Annotations, key: string): KeyDescription[] {
  const own = { key, type: typeText(schema), default: defaultText(schema), description: descriptionText(schema) };
  return [own, ...describeKeys(schema, key)];
}

function typeText(schema: TSchema): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${value}\``).join(", ");
  switch (schema.type) {
    case "integer":
      return `integer, ${schema.minimum} to ${schema.maximum}`;
    case "string":
      return `string: ${expectedBy(schema)}`;
    case "array":
      return schema.items.properties === undefined ? `list of ${typeText(schema.items)}` : "list";
    case "object":
      if (schema.propertyNames !== undefined) return `mapping; key: ${expectedBy(schema.propertyNames)}`;
      return schema.properties === undefined ? "mapping of JSON values" : "mapping";
    default:
      return expectedBy(schema);
  }
}

function defaultText({ default: value, properties }: TSchema): string {
  if (value === undefined) return properties === undefined ? "required" : "";
  if (Array.isArray(value) && typeof value[0] === "object") return "as described";
  return value === null ? "none" : `\`${JSON.stringify(value)}\``;
}

function descriptionText({ description = "", onlyWhere }: TSchema & Annotations): string {
  if (onlyWhere === undefined) return description;
  return `${description} Only where \`${onlyWhere.key}\` is ${onlyWhere.values.map((value) => `\`${value}\``).join(" or ")}.`;
}

/** The configuration file as a JSON Schema for editors. */
export function configJsonSchema(): JsonObject {
  return editorSchema("Configuration of the gateway", fileSchema);
}

/** The trust policy as a JSON Schema for editors. */
export function trustJsonSchema(): JsonObject {
  return editorSchema("Trust policy of the gateway", trustSchema);
}

const dialect = "https://json-schema.org/draft/2020-12/schema";

/**
 * A schema in the words of JSON Schema 2020-12 alone. It refuses nothing that the gateway accepts; rules across keys, and
 * formats that are more than a pattern, are only checked by the gateway.
 */
export function editorSchema(title: string, schema: TSchema): JsonObject {
  return { $schema: dialect, title, ...(withoutAnnotations(schema) as JsonObject) };
}

/** Replaces formats by their patterns, and leaves out our annotations and the defaults that stand for "absent". */
function withoutAnnotations(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutAnnotations);
  if (typeof schema !== "object" || schema === null) return schema;
  const members = Object.entries(schema).flatMap(([keyword, value]): [string, unknown][] => {
    if (annotationKeywords.includes(keyword as keyof Annotations)) return [];
    if (keyword === "default") return value === null ? [] : [[keyword, value]];
    if (keyword === "format") return patternOf(value as FormatName);
    if (keyword !== "properties") return [[keyword, withoutAnnotations(value)]];
    return [
      [keyword, Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutAnnotations(member)]))],
    ];
  });
  return Object.fromEntries(members);
}

function patternOf(format: FormatName): [string, string][] {
  const { pattern } = formats[format];
  return pattern === undefined ? [] : [["pattern", pattern]];
}
