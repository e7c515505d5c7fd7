import { canonicalJson, sha256Hex } from "../../core/action/canonical-json.ts";
import { isJsonObject, type Json } from "../../core/action/json.ts";
import type { EvidenceRecord } from "../../core/evidence/record/record.ts";
import { countedAs, countedEvents, type EventCounts } from "../../core/evidence/state/chain-state.ts";
import type { StateProof } from "../../core/evidence/state/state-map.ts";
import type { ShownState } from "../../core/evidence/state/state-store.ts";
import type { Placed } from "./evidence-world.ts";

/** The values of a map, by path. */
export type Leaves = ReadonlyMap<string, readonly number[]>;

const nothing = "0".repeat(64);
const sha = (...parts: readonly string[]): string => sha256Hex(Buffer.from(parts.join(""), "hex"));
export const pathOf = (kind: string, id: string): string => sha256Hex(canonicalJson([kind, id]));
export const saltOf = (path: string): string => `salt of ${path.slice(0, 8)}`;

/** The state of a chain after its first records, as an honest gateway finds it, and what it says of a session. */
export function stateOf(chain: readonly Placed[], size: number, session: string, principal: string): ShownState {
  const records = chain.slice(0, size).map(({ record }) => record as unknown as EvidenceRecord);
  const events = Object.fromEntries(countedEvents.map((event) => [event, 0])) as Record<string, number>;
  const leaves = new Map<string, number[]>();
  const change = (kind: string, id: unknown, end: number | undefined, stops: number): void => {
    if (typeof id !== "string") return;
    const [before = 0, counted = 0] =
      kind === "session" ? (leaves.get(pathOf(kind, id)) ?? []) : [0, ...(leaves.get(pathOf(kind, id)) ?? [])];
    leaves.set(pathOf(kind, id), kind === "session" ? [end ?? before, counted + stops] : [counted + stops]);
  };
  for (const [seq, record] of records.entries()) {
    if ("session" in record) change("session", member(record.session as unknown as Json, "id"), seq + 1, 0);
    if ("principal" in record) change("principal", member(record.principal as unknown as Json, "id"), undefined, 0);
    const counted = isJsonObject((record as unknown as { detail: Json }).detail) ? countedAs(record) : undefined;
    if (typeof counted === "string") events[counted] = (events[counted] ?? 0) + 1;
    else if (counted !== undefined) change(counted.kind, counted.id, undefined, 1);
  }
  return {
    principal: proofOf(leaves, pathOf("principal", principal)),
    session: proofOf(leaves, pathOf("session", session)),
    state: { events: events as EventCounts, map: rootOf(leaves), size },
  };
}

function member(value: Json, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}

/** The root of the map that has these leaves, found from all of them at once. */
export function rootOf(leaves: Leaves): string {
  return hashFrom(slotsAt(leaves, [...leaves.keys()], 0));
}

/** What a map proves of a path. */
export function proofOf(leaves: Leaves, path: string): StateProof {
  const beside: string[] = [];
  let paths = [...leaves.keys()];
  for (let depth = 0; ; depth++) {
    const slots = slotsAt(leaves, paths, depth);
    for (let [from, to] = [0, 16]; to - from > 1; ) {
      const middle = (from + to) / 2;
      const isLeft = digit(path, depth) < middle;
      beside.push(hashFrom(isLeft ? slots.slice(middle, to) : slots.slice(from, middle)));
      [from, to] = isLeft ? [from, middle] : [middle, to];
    }
    paths = paths.filter((each) => digit(each, depth) === digit(path, depth));
    const [only] = paths;
    if (paths.length > 1) continue;
    if (only === undefined) return { beside, other: [], salt: "", value: [] };
    if (only !== path) return { beside, other: [only, commitmentOf(leaves, only)], salt: "", value: [] };
    return { beside, other: [], salt: saltOf(path), value: leaves.get(path) ?? [] };
  }
}

function slotsAt(leaves: Leaves, paths: readonly string[], depth: number): string[] {
  return Array.from({ length: 16 }, (_, at) => {
    const below = paths.filter((path) => digit(path, depth) === at);
    const [only] = below;
    if (only === undefined) return nothing;
    if (below.length > 1) return hashFrom(slotsAt(leaves, below, depth + 1));
    return sha("00", sha256Hex(`${only}\n${commitmentOf(leaves, only)}`));
  });
}

function hashFrom(slots: readonly string[]): string {
  if (slots.length === 1) return String(slots[0]);
  return sha("01", hashFrom(slots.slice(0, slots.length / 2)), hashFrom(slots.slice(slots.length / 2)));
}

function commitmentOf(leaves: Leaves, path: string): string {
  return sha256Hex(canonicalJson([saltOf(path), leaves.get(path) ?? []]));
}

function digit(path: string, depth: number): number {
  return Number.parseInt(path.charAt(depth), 16);
}
