import { trustSchema } from "./extension-schema.ts";
import type { Field, ObjectField } from "./field.ts";
import { formats } from "./format.ts";
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
export interface KeyDescription {
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
