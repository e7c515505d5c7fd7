import { HostFinder } from "./host-fact.ts";
import type { Json } from "./json.ts";
import { PathFinder } from "./path-fact.ts";
import type { ActionFacts } from "./session-state.ts";

/** Characters that are looked at, of one text and of all. An action may be a thousand times as long. */
const mostOfText = 16_384;
const mostOfAll = 65_536;

/**
 * Where arguments reach to, found without understanding any language in them: in texts and in names of members. `more`
 * where something was too long or too much to be looked at whole. Its cost is bounded, whatever comes.
 */
export function findActionFacts(args: Json): ActionFacts {
  const hosts = new HostFinder();
  const paths = new PathFinder();
  let left = mostOfAll;
  let cut = false;
  for (const text of textsIn(args)) {
    const seen = text.slice(0, Math.min(mostOfText, left));
    cut ||= seen.length < text.length;
    left -= seen.length;
    hosts.look(seen);
    paths.look(seen);
    if (left === 0) break;
  }
  const [found, foundPaths] = [hosts.facts(), paths.facts()];
  return { hosts: found.items, paths: foundPaths.items, more: cut || left === 0 || found.more || foundPaths.more };
}

function* textsIn(root: Json): Iterable<string> {
  const waiting: Json[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === "string") yield value;
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) yield* Object.keys(value);
    const inner: readonly Json[] = Object.values(value);
    for (let index = inner.length - 1; index >= 0; index--) waiting.push(inner[index] as Json);
  }
}
