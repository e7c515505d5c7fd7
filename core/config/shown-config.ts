import { Document, isMap, isScalar, isSeq } from "yaml";
import type { Json, JsonObject } from "../action/json.ts";
import type { Field } from "./field.ts";
import type { FormatName } from "./format.ts";
import { type FileForm, fileSchema } from "./schema.ts";

/** Texts of these kinds may hold a secret even where they are right. */
const secretive: ReadonlySet<FormatName> = new Set(["argument", "header_value", "provider_key", "url", "webhook_url"]);

/**
 * A checked file as it may be shown to anybody who helps: every default filled in, of addresses the host alone, and of
 * arguments, environments and headers their lengths. Where nothing is hidden, it means the same as the file.
 */
export function hideSecrets(form: FileForm): JsonObject {
  return hidden(form, fileSchema) as JsonObject;
}

function hidden(value: unknown, field: Field): Json {
  switch (field.type) {
    case "list":
      return (value as readonly unknown[]).map((item) => hidden(item, field.of));
    case "map":
      return members(value, () => field.of);
    case "object":
      return members(value, (name) => field.fields[name] as Field);
    case "string":
      return secretive.has(field.format) ? outlineOf(value as string) : (value as string);
    default:
      return value as Json;
  }
}

function members(value: unknown, fieldOf: (name: string) => Field): JsonObject {
  const entries = Object.entries(value as object).filter(([name, member]) => isGiven(member, fieldOf(name)));
  return Object.fromEntries(entries.map(([name, member]) => [name, hidden(member, fieldOf(name))]));
}

/** What no file can spell out is only ever left out. */
function isGiven(value: unknown, field: Field): boolean {
  if (value === null) return false;
  return !(field.type === "list" && field.whenEmpty !== undefined && (value as readonly unknown[]).length === 0);
}

function outlineOf(text: string): string {
  if (!/^https?:/.test(text) || !URL.canParse(text)) return `[hidden, ${text.length} characters]`;
  const { origin, pathname, search } = new URL(text);
  return pathname === "/" && search === "" ? origin : `${origin}/[hidden]`;
}

/** The text of a file that holds it, with a remark beside each value that is the default. */
export function writeShown(shown: JsonObject): string {
  const document = new Document(shown);
  remark(document.contents, fileSchema);
  return document.toString({ lineWidth: 0 });
}

function remark(node: unknown, field: Field | undefined): void {
  if (isSeq(node) && field?.type === "list") for (const item of node.items) remark(item, field.of);
  if (isScalar(node) && field !== undefined && node.value === field.default) node.comment = " default";
  if (!isMap(node) || field?.type !== "object") return;
  for (const { key, value } of node.items) remark(value, isScalar(key) ? field.fields[String(key.value)] : undefined);
}
