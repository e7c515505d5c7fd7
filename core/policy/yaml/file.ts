import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseDocument, type YamlNode } from "../../config/document.ts";
import { FaultList } from "../../config/fault.ts";
import type { Faults, Place } from "../fault.ts";
import { readRootList } from "./reader.ts";

/** Reads one YAML document of a pack, adding every fault it finds; undefined where there is one. */
export function parseYaml(file: string, text: string, faults: Faults): YamlNode | undefined {
  const own = new FaultList(file);
  const root = parseDocument(file, text, own);
  for (const { line, column, message } of own.all) faults.add({ file, line: line ?? 1, column: column ?? 1 }, message);
  return own.isEmpty ? root : undefined;
}

/** The document of one file of an extension; undefined where it has a fault. */
export function readYamlFile(file: string, bytes: Buffer, faults: Faults): YamlNode | undefined {
  if (isUtf8(bytes)) return parseYaml(file, bytes.toString("utf8"), faults);
  faults.add(startOf(file), "expected UTF-8, got invalid bytes");
  return undefined;
}

/** The items of a file that holds the list `key` and nothing else. */
export async function readItems(
  file: string,
  bytes: Buffer,
  key: string,
  faults: Faults,
): Promise<readonly YamlNode[]> {
  // A reload happens while requests are served: let them in between files.
  await nextTurn();
  const root = readYamlFile(file, bytes, faults);
  return root === undefined ? [] : readRootList(root, key, `\`${file}\``, faults);
}

export function startOf(file: string): Place {
  return { file, line: 1, column: 1 };
}
