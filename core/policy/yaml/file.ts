import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap, type YAMLSeq } from "yaml";
import { composeYaml } from "../../config/yaml-document.ts";
import type { Faults, Place } from "../fault.ts";
import type { YamlList, YamlMap, YamlMember, YamlNode, YamlScalar } from "./node.ts";
import { readRootList } from "./reader.ts";

/**
 * Reads one YAML document of a pack, adding every fault it finds; undefined where there is one.
 * Beside what `composeYaml` refuses: aliases and anchors, merge keys, tags, keys given twice, and numbers a double
 * cannot hold.
 */
export function parseYaml(file: string, text: string, faults: Faults): YamlNode | undefined {
  const before = faults.count;
  const { root, placeOf } = composeYaml(text, (fault, place) => faults.add({ file, ...place }, fault));
  const locate = (offset: number): Place => ({ file, ...placeOf(offset) });
  if (faults.count > before) return undefined;
  if (root === null) {
    faults.add(locate(0), "expected a mapping, got nothing");
    return undefined;
  }
  const node = new Builder(text, locate, faults).build(root);
  return faults.count > before ? undefined : node;
}

/** Turns the library's nodes into ours, and refuses what a pack may not use. */
class Builder {
  readonly #text: string;
  readonly #locate: (offset: number) => Place;
  readonly #faults: Faults;

  constructor(text: string, locate: (offset: number) => Place, faults: Faults) {
    this.#text = text;
    this.#locate = locate;
    this.#faults = faults;
  }

  build(node: ParsedNode): YamlNode {
    const place = this.#locate(node.range[0]);
    this.#refuseIndirection(node, place);
    if (isMap(node)) return this.#map(node, place);
    if (isSeq(node)) return this.#list(node, place);
    if (isScalar(node)) return this.#scalar(node, place);
    return { kind: "scalar", value: null, place, placeAt: () => place };
  }

  #map(node: YAMLMap.Parsed, place: Place): YamlMap {
    const members = new Map<string, YamlMember>();
    for (const pair of node.items) {
      const key = String(isScalar(pair.key) ? pair.key.value : pair.key);
      const keyPlace = this.#locate(pair.key.range[0]);
      this.#refuseIndirection(pair.key, keyPlace);
      if (members.has(key)) this.#faults.add(keyPlace, `duplicate key \`${key}\``);
      if (key === "<<") this.#faults.add(keyPlace, "expected no merge key; write the members out");
      const value: YamlNode =
        pair.value === null
          ? { kind: "scalar", value: null, place: keyPlace, placeAt: () => keyPlace }
          : this.build(pair.value);
      members.set(key, { keyPlace, value });
    }
    return { kind: "map", members, place };
  }

  /** The file must say what it shows, read from top to bottom. */
  #refuseIndirection(node: ParsedNode, place: Place): void {
    if (isAlias(node)) this.#faults.add(place, "expected no alias; write the value out");
    else if (node.anchor !== undefined) this.#faults.add(place, "expected no anchor");
    // The composer names a tag only where the file does.
    if (node.tag !== undefined) this.#faults.add(place, "expected no tag");
  }

  #list(node: YAMLSeq.Parsed, place: Place): YamlList {
    return { kind: "list", items: node.items.map((item) => this.build(item as ParsedNode)), place };
  }

  #scalar(node: Scalar.Parsed, place: Place): YamlScalar {
    const { value } = node;
    if (typeof value === "number" && !isExact(value)) {
      this.#faults.add(place, `expected a number that a double holds exactly, got \`${String(node.source)}\``);
    }
    const placeAt = (offset: number): Place => this.#locate(this.#offsetIn(node, offset));
    return { kind: "scalar", value: value as YamlScalar["value"], place, placeAt };
  }

  /** Exact for one-line scalars and literal blocks; otherwise the start of the scalar. */
  #offsetIn(node: Scalar.Parsed, offset: number): number {
    const [start, end] = node.range;
    if (node.type === "BLOCK_LITERAL") return blockOffset(this.#text, start, node.value as string, offset);
    if (this.#text.slice(start, end).includes("\n")) return start;
    return start + (node.type === "PLAIN" ? 0 : 1) + offset;
  }
}

function blockOffset(text: string, start: number, value: string, offset: number): number {
  const before = value.slice(0, offset).split("\n");
  let line = text.indexOf("\n", start) + 1;
  const indent = (text.slice(line).match(/^ */) as RegExpMatchArray)[0].length;
  for (let skipped = 1; skipped < before.length; skipped++) line = text.indexOf("\n", line) + 1;
  return line + indent + (before.at(-1) as string).length;
}

function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
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
