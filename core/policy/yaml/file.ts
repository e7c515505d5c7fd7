import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Faults, Place } from "../fault.ts";
import type { YamlNode } from "./node.ts";
import { parseYaml } from "./parse.ts";
import { readRootList } from "./reader.ts";

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
