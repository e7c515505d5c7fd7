import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Static, TSchema } from "@sinclair/typebox";
import { checkDocument } from "../config/check.ts";
import { parseDocument, type YamlNode } from "../config/document.ts";
import { FaultList, type Place } from "../config/fault.ts";
import { list, object } from "../config/schema.ts";
import { Type } from "../config/type.ts";

/** Reads the YAML document of one file of an extension; undefined where it is not a document. */
export function readYamlFile(file: string, bytes: Buffer, faults: FaultList): YamlNode | undefined {
  if (isUtf8(bytes)) return parseDocument(file, bytes.toString("utf8"), faults);
  faults.addAt(startOf(file), "expected UTF-8, got invalid bytes");
  return undefined;
}

/**
 * Checks a document, or the part of one at `path`, and adds its faults to those of the extension. Returns undefined where
 * there is one.
 */
export function checkNode<Schema extends TSchema>(
  node: YamlNode,
  schema: Schema,
  faults: FaultList,
  path = "",
): Static<Schema> | undefined {
  // A list of its own: two files of an extension have the same paths.
  const own = new FaultList(node.place.file);
  const draft = checkDocument(node, schema, own, path);
  for (const { file, line, column, path: at = "", message } of own.all) {
    faults.add(at, message, { file, line: line ?? 1, column: column ?? 1 });
  }
  // INVARIANT: without a fault the draft has no holes.
  return own.isEmpty ? (draft as Static<Schema>) : undefined;
}

/** Reads the items of a file that holds the list `key` and nothing else. */
export async function readItems(
  file: string,
  bytes: Buffer,
  key: string,
  faults: FaultList,
): Promise<readonly YamlNode[]> {
  // A reload happens while requests are served: yield to them between files.
  await nextTurn();
  const root = readYamlFile(file, bytes, faults);
  if (root === undefined) return [];
  const fileSchema = object("The file.", { [key]: list("Its items.", Type.Unknown()) });
  if (checkNode(root, fileSchema, faults) === undefined) return [];
  const items = memberOf(root, key);
  return items?.kind === "list" ? items.items : [];
}

/** Returns the value of a key of a mapping. */
export function memberOf(node: YamlNode, key: string): YamlNode | undefined {
  return node.kind === "map" ? node.members.get(key)?.value : undefined;
}

export function startOf(file: string): Place {
  return { file, line: 1, column: 1 };
}
