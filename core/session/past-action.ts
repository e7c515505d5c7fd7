import type { Decision } from "../kernel/decision.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { deepFreeze } from "../kernel/json.ts";
import type { PastAction } from "../kernel/session-state.ts";
import { ownText } from "./own-text.ts";
import type { KnownTool } from "./tool-table.ts";

const mostPlaces = 4;
const longestPlace = 256;
/** What its members and lists take beside their texts. */
const overhead = 256;

/** What a session remembers of an action. */
export function pastOf(
  { protocol, capability, facts }: ActionEnvelope,
  { tool, target }: KnownTool,
  decision: Decision,
  dispatched: boolean,
  at: number,
): PastAction {
  const [hosts, paths] = [placesIn(facts?.hosts), placesIn(facts?.paths)];
  return deepFreeze({ at, protocol, tool, target, capability, decision, dispatched, hosts, paths });
}

/** About how many bytes it takes in memory, as if it shared nothing with others. */
export function sizeOf({ tool, target, hosts, paths }: PastAction): number {
  return overhead + sum([tool, target]) + sum(hosts) + sum(paths);
}

function placesIn(places: readonly string[] = []): readonly string[] {
  return places
    .filter(({ length }) => length <= longestPlace)
    .slice(0, mostPlaces)
    .map(ownText);
}

function sum(texts: readonly string[]): number {
  return texts.reduce((total, { length }) => total + length, 0);
}
