import type { Json } from "../../action/json.ts";
import type { Place } from "../fault.ts";

/** YAML as a pack may use it: no aliases, no tags, no merge keys, each key once; every node knows its place. */
export type YamlNode = YamlMap | YamlList | YamlScalar;

export interface YamlScalar {
  readonly kind: "scalar";
  readonly value: string | number | boolean | null;
  readonly place: Place;
  /** The place of the character at `offset` of the value, as near as the scalar's style lets it be told. */
  placeAt(offset: number): Place;
}

export interface YamlList {
  readonly kind: "list";
  readonly items: readonly YamlNode[];
  readonly place: Place;
}

export interface YamlMember {
  readonly keyPlace: Place;
  readonly value: YamlNode;
}

export interface YamlMap {
  readonly kind: "map";
  readonly members: ReadonlyMap<string, YamlMember>;
  readonly place: Place;
}

/** The node as a JSON value; `__proto__` and its like are plain members. */
export function toJson(node: YamlNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(toJson);
  return Object.fromEntries(Array.from(node.members, ([key, member]) => [key, toJson(member.value)]));
}

/** The word for a node, for messages. */
export function describeNode(node: YamlNode): string {
  if (node.kind === "map") return "a mapping";
  if (node.kind === "list") return "a list";
  if (node.value === null) return "nothing";
  return typeof node.value === "string" ? "a text" : `\`${String(node.value)}\``;
}
