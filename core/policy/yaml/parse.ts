import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { Faults, Place } from "../fault.ts";
import type { YamlList, YamlMap, YamlMember, YamlNode, YamlScalar } from "./node.ts";
import { scanTokens, tooDeep } from "./scan.ts";

const deepestYaml = 32;

/**
 * Reads one YAML document of a pack, adding every fault it finds; undefined where there is one.
 * Refused: a second document, aliases and anchors, merge keys, tags and directives, keys given twice or not text,
 * numbers a double cannot hold, more than 32 levels.
 */
export function parseYaml(file: string, text: string, faults: Faults): YamlNode | undefined {
  const before = faults.count;
  const locate = placesIn(file, text);
  for (const { offset, message } of scanTokens(text, deepestYaml)) faults.add(locate(offset), message);
  if (faults.count > before) return undefined;
  const document = parseDocument(text, {
    strict: true,
    stringKeys: true,
    // The library compares each key with all before it; `#map` does the same in linear time.
    uniqueKeys: false,
    merge: false,
    schema: "core",
    prettyErrors: false,
    logLevel: "error",
  });
  reportProblems(document, locate, faults);
  if (faults.count > before) return undefined;
  if (document.contents === null) {
    faults.add(locate(0), "expected a mapping, got nothing");
    return undefined;
  }
  const root = new Builder(text, locate, faults).build(document.contents, 1);
  return faults.count > before ? undefined : root;
}

/** Tells the place of an offset. */
function placesIn(file: string, text: string): (offset: number) => Place {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle;
    }
    return { file, line: low + 1, column: offset - (starts[low] as number) + 1 };
  };
}

function reportProblems(document: Document.Parsed, locate: (offset: number) => Place, faults: Faults): void {
  for (const problem of [...document.errors, ...document.warnings]) {
    const message = problem.message.replace(/; please use .*$/, "");
    faults.add(locate(problem.pos[0]), message.charAt(0).toLowerCase() + message.slice(1));
  }
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

  build(node: ParsedNode, depth: number): YamlNode {
    const place = this.#locate(node.range[0]);
    if (depth > deepestYaml) this.#faults.add(place, tooDeep(deepestYaml));
    else if (isMap(node)) return this.#map(node, place, depth);
    else if (isSeq(node)) return this.#list(node, place, depth);
    else if (isScalar(node)) return this.#scalar(node, place);
    return { kind: "scalar", value: null, place, placeAt: () => place };
  }

  #map(node: YAMLMap.Parsed, place: Place, depth: number): YamlMap {
    const members = new Map<string, YamlMember>();
    for (const pair of node.items) {
      const key = String(isScalar(pair.key) ? pair.key.value : pair.key);
      const keyPlace = this.#locate(pair.key.range[0]);
      if (members.has(key)) this.#faults.add(keyPlace, `duplicate key \`${key}\``);
      if (key === "<<") this.#faults.add(keyPlace, "expected no merge key; write the members out");
      const value: YamlNode =
        pair.value === null
          ? { kind: "scalar", value: null, place: keyPlace, placeAt: () => keyPlace }
          : this.build(pair.value, depth + 1);
      members.set(key, { keyPlace, value });
    }
    return { kind: "map", members, place };
  }

  #list(node: YAMLSeq.Parsed, place: Place, depth: number): YamlList {
    return { kind: "list", items: node.items.map((item) => this.build(item as ParsedNode, depth + 1)), place };
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
