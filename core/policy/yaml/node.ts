import type { YamlNode } from "../../config/document.ts";

export type { YamlList, YamlMap, YamlNode, YamlScalar } from "../../config/document.ts";
export { plainValue as toJson } from "../../config/document.ts";

/** The word for a node, for messages. */
export function describeNode(node: YamlNode): string {
  if (node.kind === "map") return "a mapping";
  if (node.kind === "list") return "a list";
  if (node.value === null) return "nothing";
  return typeof node.value === "string" ? "a text" : `\`${String(node.value)}\``;
}
