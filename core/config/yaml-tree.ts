import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import type { Json } from "../action/json.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import { composeYaml, type TextPlace } from "./yaml-document.ts";

/** A YAML value with the place of each part of it: plain data, and nothing else that YAML knows. */
export type YamlTree =
  | { readonly kind: "scalar"; readonly value: string | number | boolean | null; readonly place: TextPlace }
  | { readonly kind: "list"; readonly items: readonly YamlTree[]; readonly place: TextPlace }
  | { readonly kind: "map"; readonly entries: readonly YamlEntry[]; readonly place: TextPlace };

export interface YamlEntry {
  readonly key: string;
  readonly keyPlace: TextPlace;
  readonly value: YamlTree;
}

/**
 * Reads a configuration text so that no two readers can disagree about it.
 * Beside what `composeYaml` refuses, tags, anchors, aliases, merge keys and duplicate keys are faults.
 * Returns null where there is no tree to speak of.
 */
export function readYamlTree(text: string, faults: FaultList): YamlTree | null {
  const { root, placeOf } = composeYaml(text, (fault, place) => faults.add("", fault, place));
  return root === null ? null : new Grower(placeOf, faults).grow(root);
}

/** The tree as a JSON value, without its places. */
export function plainValue(tree: YamlTree): Json {
  if (tree.kind === "scalar") return tree.value;
  if (tree.kind === "list") return tree.items.map(plainValue);
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plainValue(value)]));
}

/** Turns the composer's nodes into a tree. Depth was bounded by `composeYaml`. */
class Grower {
  readonly #placeOf: (offset: number) => TextPlace;
  readonly #faults: FaultList;

  constructor(placeOf: (offset: number) => TextPlace, faults: FaultList) {
    this.#placeOf = placeOf;
    this.#faults = faults;
  }

  grow(node: ParsedNode): YamlTree {
    const place = this.#placeOf(node.range[0]);
    this.#refuseIndirection(node, place);
    if (isMap<ParsedNode, ParsedNode | null>(node)) return { kind: "map", entries: this.#entries(node), place };
    if (isSeq<ParsedNode>(node)) return { kind: "list", items: node.items.map((item) => this.grow(item)), place };
    return { kind: "scalar", value: isScalar(node) ? scalarValue(node.value) : null, place };
  }

  #entries(map: YAMLMap<ParsedNode, ParsedNode | null>): YamlEntry[] {
    const seen = new Set<string>();
    return map.items.map((pair) => {
      const keyPlace = this.#placeOf(pair.key.range[0]);
      this.#refuseIndirection(pair.key, keyPlace);
      const key = isScalar(pair.key) ? String(pair.key.value) : "";
      if (key === "<<") this.#faults.add("", "expected plain keys, got the merge key `<<`", keyPlace);
      else if (seen.has(key)) this.#faults.add("", `expected each key once, got ${quoteInput(key)} again`, keyPlace);
      seen.add(key);
      const absent: YamlTree = { kind: "scalar", value: null, place: keyPlace };
      return { key, keyPlace, value: pair.value === null ? absent : this.grow(pair.value) };
    });
  }

  /** The file must say what it shows, read from top to bottom. */
  #refuseIndirection(node: ParsedNode, place: TextPlace): void {
    if (isAlias(node)) this.#faults.add("", "expected a plain value, got an alias", place);
    else if (node.anchor !== undefined) this.#faults.add("", "expected a plain value, got an anchor", place);
    // The composer names a tag only where the file does.
    if (node.tag !== undefined)
      this.#faults.add("", `expected a plain value, got the tag ${quoteInput(node.tag)}`, place);
  }
}

function scalarValue(value: unknown): string | number | boolean | null {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return null;
}

const maxBytes = 1_048_576;

/**
 * The text of a configuration file: a regular file of at most 1 MiB of UTF-8 without byte order mark and NUL.
 * Anything else is a fault, and the answer null.
 */
export async function readConfigFile(path: string, faults: FaultList): Promise<string | null> {
  let bytes: Buffer;
  try {
    const found = await stat(path);
    // A pipe or a device would make the start wait for ever.
    if (!found.isFile()) return refuse(`a file, got ${found.isDirectory() ? "a directory" : "a special file"}`, faults);
    if (found.size > maxBytes) return refuse(`at most ${maxBytes} bytes, got ${found.size}`, faults);
    bytes = await readFile(path);
  } catch (error) {
    return refuse(`a readable file, got ${reason(error)}`, faults);
  }
  if (!isUtf8(bytes)) return refuse("UTF-8, got invalid bytes", faults);
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff")) return refuse("no byte order mark, got one", faults);
  return text.includes("\0") ? refuse("text, got a NUL character", faults) : text;
}

function refuse(expectedAndGot: string, faults: FaultList): null {
  faults.add("", `expected ${expectedAndGot}`);
  return null;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "a loop of symbolic links",
  ENAMETOOLONG: "a name too long",
};

/** Throws what is no error of the file system. */
function reason(error: unknown): string {
  if (!(error instanceof Error && "code" in error)) throw error;
  return reasons[String(error.code)] ?? `error ${String(error.code)}`;
}
