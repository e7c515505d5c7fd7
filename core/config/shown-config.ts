import type { TSchema } from "@sinclair/typebox";
import { Document, isMap, isScalar, isSeq } from "yaml";
import type { Json, JsonObject } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { memberSchema } from "./check.ts";
import { type FileForm, fileSchema } from "./file-schema.ts";
import type { FormatName } from "./format.ts";
import type { Annotations } from "./schema.ts";

/** Formats whose values may hold a secret even where they are right. */
const secretFormats: ReadonlySet<string> = new Set<FormatName>([
  "argument",
  "header_value",
  "provider_key",
  "url",
  "webhook_url",
]);

/**
 * A checked file as it may be shown to anybody: every default filled in, of addresses the host alone, and of arguments,
 * environments and headers their lengths. Where nothing is hidden, it means the same as the file.
 */
export function hideSecrets(form: FileForm): JsonObject {
  return hideIn(form, fileSchema) as JsonObject;
}

function hideIn(value: unknown, schema: TSchema): Json {
  if (Array.isArray(value)) return value.map((item) => hideIn(item, schema.items ?? {}));
  if (typeof value === "string" && secretFormats.has(schema.format)) return outlineText(value);
  const isOpaque = schema.properties === undefined && schema.additionalProperties === undefined;
  if (typeof value !== "object" || value === null || isOpaque) return value as Json;
  const members = Object.entries(value).filter(([name, member]) => isGiven(member, memberSchema(schema, name)));
  return Object.fromEntries(members.map(([name, member]) => [name, hideIn(member, memberSchema(schema, name))]));
}

/** Returns false for a value that a file can only express by leaving the key out. */
function isGiven(value: unknown, { whenEmpty }: Annotations): boolean {
  return value !== null && !(whenEmpty !== undefined && Array.isArray(value) && value.length === 0);
}

function outlineText(text: string): string {
  const url = /^https?:/.test(text) ? parsedUrl(text) : undefined;
  if (url === undefined) return `[hidden, ${text.length} characters]`;
  const { origin, pathname, search } = url;
  return pathname === "/" && search === "" ? origin : `${origin}/[hidden]`;
}

/** The text of a file that holds `shown`, with a comment beside each value that is the default. */
export function writeShown(shown: JsonObject): string {
  const document = new Document(shown);
  markDefaults(document.contents, fileSchema);
  return document.toString({ lineWidth: 0 });
}

function markDefaults(node: unknown, schema: TSchema): void {
  if (isSeq(node)) for (const item of node.items) markDefaults(item, schema.items ?? {});
  if (isScalar(node) && node.value === schema.default) node.comment = " default";
  if (!isMap(node) || schema.properties === undefined) return;
  for (const { key, value } of node.items)
    if (isScalar(key)) markDefaults(value, memberSchema(schema, String(key.value)));
}
