import type { Field } from "./field.ts";
import { formats } from "./format.ts";
import { fileSchema } from "./schema.ts";

/** Markdown: one row for each key of the file, in the order of the schema. */
export function configReference(): string {
  const rows = membersOf(fileSchema, "");
  return [
    "# Configuration reference",
    "",
    "Generated from the schema by `gateway config reference --write core/config/REFERENCE.md`.",
    "`[]` stands for each entry of a list, `<name>` for a key of your choosing.",
    "",
    "| key | type | default | description |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

function membersOf(field: Field, path: string): string[] {
  if (field.type === "object") {
    return Object.entries(field.fields).flatMap(([key, member]) =>
      rowsOf(member, path === "" ? key : `${path}.${key}`),
    );
  }
  if (field.type === "list" && field.of.type === "object") return membersOf(field.of, `${path}[]`);
  if (field.type === "map") return rowsOf(field.of, `${path}.<name>`);
  return [];
}

function rowsOf(field: Field, path: string): string[] {
  const cells = [`\`${path}\``, typeText(field), defaultText(field), descriptionText(field)];
  const row = `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [row, ...membersOf(field, path)];
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
  return field.default === null ? "none" : `\`${JSON.stringify(field.default)}\``;
}

function descriptionText({ description, only }: Field): string {
  if (only === undefined) return description;
  return `${description} Only where \`${only.key}\` is ${only.values.map((value) => `\`${value}\``).join(" or ")}.`;
}
