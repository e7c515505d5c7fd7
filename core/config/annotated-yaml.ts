import { Document, isMap, isScalar, isSeq } from "yaml";
import type { JsonObject } from "../kernel/json.ts";
import { trustSchema } from "./extension-schema.ts";
import type { Field } from "./field.ts";
import { fileSchema } from "./schema.ts";

/** Characters of a line of comment. */
const widest = 110;

/** The text of a configuration file that holds `form`, each key below what the schema says of it; `intro` comes first. */
export function annotateConfig(form: JsonObject, intro: string): string {
  return annotate(form, fileSchema, intro);
}

/** The same of a trust policy. */
export function annotateTrust(form: JsonObject, intro: string): string {
  return annotate(form, trustSchema, intro);
}

function annotate(form: JsonObject, schema: Field, intro: string): string {
  const document = new Document(form);
  describeNode(document.contents, schema);
  if (isMap(document.contents)) for (const { key } of document.contents.items.slice(1)) setApart(key);
  document.commentBefore = commentOf(intro);
  return document.toString({ lineWidth: 0 });
}

function describeNode(node: unknown, field: Field | undefined): void {
  // The same keys of a second entry need no second description.
  if (isSeq(node) && field?.type === "list") describeNode(node.items[0], field.of);
  if (!isMap(node) || field?.type !== "object") return;
  for (const { key, value } of node.items) {
    const member = isScalar(key) ? field.fields[String(key.value)] : undefined;
    if (isScalar(key) && member !== undefined) key.commentBefore = commentOf(member.description);
    describeNode(value, member);
  }
}

function setApart(key: unknown): void {
  if (isScalar(key)) key.spaceBefore = true;
}

function commentOf(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < widest) lines.splice(-1, 1, `${last} ${word}`);
    else lines.push(` ${word}`);
  }
  return lines.join("\n");
}
