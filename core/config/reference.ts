import type { JsonObject } from "../action/json.ts";
import { trustSchema } from "./extension-schema.ts";
import type { Field, ObjectField } from "./field.ts";
import { type FormatName, formats } from "./format.ts";
import { fileSchema } from "./schema.ts";

type Row = readonly [key: string, type: string, fallback: string, description: string];

const preamble = `# Configuration reference

\`[]\` stands for each entry of a list, \`<name>\` for a key of your choosing.
`;

const trustPreamble = `# Trust policy reference

The file that \`extensions.trust_policy\` names.
`;

/** The same for the trust policy. */
export function trustReference(): string {
  return tableOf(trustSchema, trustPreamble);
}

/** Markdown: one row for each key of the file, in the order of the schema, with columns aligned. */
export function configReference(): string {
  return tableOf(fileSchema, preamble);
}

/** One key of a file, its texts in Markdown. */
interface KeyDescription {
  readonly key: string;
  readonly type: string;
  readonly default: string;
  readonly description: string;
}

/** What the reference says of the configuration, key by key. */
export function configKeys(): readonly KeyDescription[] {
  return membersOf(fileSchema, "").map(describeRow);
}

/** The same of the trust policy. */
export function trustKeys(): readonly KeyDescription[] {
  return membersOf(trustSchema, "").map(describeRow);
}

function describeRow([key, type, fallback, description]: Row): KeyDescription {
  return { key: key.replaceAll("`", ""), type, default: fallback, description };
}

function tableOf(schema: ObjectField, intro: string): string {
  const rows: readonly Row[] = [["key", "type", "default", "description"], ...membersOf(schema, "")];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const [head = "", ...body] = rows.map((row) =>
    tableLine(row.map((cell, column) => cell.padEnd(widths[column] ?? 0))),
  );
  const rule = tableLine(widths.map((width) => "-".repeat(width)));
  return `${[intro, head, rule, ...body].join("\n")}\n`;
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function membersOf(field: Field, path: string): Row[] {
  if (field.type === "object") {
    return Object.entries(field.fields).flatMap(([key, member]) =>
      rowsOf(member, path === "" ? key : `${path}.${key}`),
    );
  }
  if (field.type === "list" && field.of.type === "object") return membersOf(field.of, `${path}[]`);
  if (field.type === "map") return rowsOf(field.of, `${path}.<name>`);
  return [];
}

function rowsOf(field: Field, path: string): Row[] {
  return [[`\`${path}\``, typeText(field), defaultText(field), descriptionText(field)], ...membersOf(field, path)];
}

function typeText(field: Field): string {
  switch (field.type) {
    case "boolean":
      return "`true` or `false`";
    case "integer":
      return `integer, ${field.min} to ${field.max}`;
    case "string":
      return `string: ${formats[field.format].expected}`;
    case "choice":
      return field.values.map((value) => `\`${value}\``).join(", ");
    case "list":
      return field.of.type === "object" ? "list" : `list of ${typeText(field.of)}`;
    case "map":
      return `mapping; key: ${formats[field.key].expected}`;
    case "object":
      return "mapping";
    case "json":
      return "mapping of JSON values";
  }
}

function defaultText(field: Field): string {
  if (field.required === true) return "required";
  if (field.type === "object") return "";
  if (isListOfMappings(field.default)) return "as described";
  return field.default === null ? "none" : `\`${JSON.stringify(field.default)}\``;
}

/** Whether a default is too much for a cell. */
function isListOfMappings(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === "object";
}

function descriptionText({ description, only }: Field): string {
  if (only === undefined) return description;
  return `${description} Only where \`${only.key}\` is ${only.values.map((value) => `\`${value}\``).join(" or ")}.`;
}

const dialect = "https://json-schema.org/draft/2020-12/schema";

/**
 * The configuration file as JSON Schema 2020-12, for editors: it refuses nothing that the gateway takes. What the gateway
 * asks beyond it, such as rules across keys, is for `loadConfig` to say.
 */
export function configJsonSchema(): JsonObject {
  return { $schema: dialect, title: "Configuration of the gateway", ...schemaOf(fileSchema) };
}

/** The same of the trust policy. */
export function trustJsonSchema(): JsonObject {
  return { $schema: dialect, title: "Trust policy of the gateway", ...schemaOf(trustSchema) };
}

function schemaOf(field: Field): JsonObject {
  const { description, default: fallback } = field;
  const usual = fallback === undefined || fallback === null ? {} : { default: fallback as JsonObject };
  return { description, ...usual, ...shapeOf(field) };
}

function shapeOf(field: Field): JsonObject {
  switch (field.type) {
    case "boolean":
      return { type: "boolean" };
    case "integer":
      return { type: "integer", minimum: field.min, maximum: field.max };
    case "string":
      return { type: "string", ...patternOf(field.format) };
    case "choice":
      return { type: "string", enum: field.values };
    case "list":
      return { type: "array", ...(field.whenEmpty === undefined ? {} : { minItems: 1 }), items: schemaOf(field.of) };
    case "map":
      return { type: "object", propertyNames: patternOf(field.key), additionalProperties: schemaOf(field.of) };
    case "object":
      return objectShape(field);
    case "json":
      return { type: "object" };
  }
}

function patternOf(format: FormatName): JsonObject {
  const { pattern } = formats[format];
  return pattern === undefined ? {} : { pattern };
}

function objectShape({ fields }: ObjectField): JsonObject {
  const members = Object.entries(fields);
  const required = members.filter(([, { required: must, only }]) => must === true && only === undefined);
  const conditions = members.flatMap(([name, member]) => conditionOf(name, member));
  return {
    type: "object",
    properties: Object.fromEntries(members.map(([name, member]) => [name, schemaOf(member)])),
    additionalProperties: false,
    ...(required.length === 0 ? {} : { required: required.map(([name]) => name) }),
    ...(conditions.length === 0 ? {} : { allOf: conditions }),
  };
}

/** A field that belongs to some values of a sibling is refused beside its others. */
function conditionOf(name: string, { required, only }: Field): readonly JsonObject[] {
  if (only === undefined) return [];
  const isOther = { properties: { [only.key]: { not: { enum: only.values } } }, required: [only.key] };
  const isAlone = { anyOf: [{ not: isOther }, { properties: { [name]: false } }] };
  if (required !== true) return [isAlone];
  const fits = { properties: { [only.key]: { enum: only.values } }, required: [only.key] };
  return [isAlone, { anyOf: [{ not: fits }, { required: [name] }] }];
}
