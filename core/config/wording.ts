import { suggest } from "../action/suggestion.ts";
import { quoteInput } from "./fault.ts";
import type { YamlTree } from "./yaml-tree.ts";

/** A value as a fault names it. */
export function describe(tree: YamlTree): string {
  if (tree.kind !== "scalar") return outline(tree);
  if (tree.value === null) return "nothing";
  return typeof tree.value === "string" ? quoteInput(tree.value) : `the ${typeof tree.value} \`${tree.value}\``;
}

/** The same without what the value says: it may be a secret. */
export function outline(tree: YamlTree): string {
  if (tree.kind === "list") return "a list";
  if (tree.kind === "map") return "a mapping";
  if (tree.value === null) return "nothing";
  return typeof tree.value === "string" ? `a string of ${tree.value.length} characters` : `a ${typeof tree.value}`;
}

/** `a`, `b` or `c`. */
export function oneOf(values: readonly string[]): string {
  const last = values.at(-1);
  const quoted = values.map((value) => `\`${value}\``);
  return last === undefined || quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} or \`${last}\``;
}

/** `a`, `b`, `c`. */
export function listed(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(", ");
}

/** A parenthesis with the known word that was meant, if one is near. */
export function hint(value: string, known: readonly string[]): string {
  const near = suggest(value, known);
  return near === undefined ? "" : ` (did you mean \`${near}\`?)`;
}
