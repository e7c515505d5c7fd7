import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { memberPointer } from "../action/json-pointer.ts";

/**
 * One difference. `pointer` (RFC 6901) resolves in `before` for a removed value, in `after` for an added one, and in both
 * for a changed one.
 */
export type ArgumentChange =
  | { readonly pointer: string; readonly kind: "added"; readonly after: Json }
  | { readonly pointer: string; readonly kind: "removed"; readonly before: Json }
  | { readonly pointer: string; readonly kind: "changed"; readonly before: Json; readonly after: Json };

interface ArgumentDiff {
  readonly changes: readonly ArgumentChange[];
  /** The number of further changes; 0 where the list is complete. */
  readonly omitted: number;
}

/** The two values at one pointer; undefined where there is none. */
interface Pair {
  readonly pointer: string;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** Characters of all pointers together: an agent chooses the names of members, and their length. */
const maxPointerLength = 262_144;

/**
 * Compares two values and lists up to `maxChanges` differences, sorted by the names of members and the order of lists.
 * Lists are compared item by item after their common prefix and before their common suffix. Takes linear time but for
 * sorting names, at any depth.
 */
export function diffArguments(before: Json, after: Json, maxChanges = 200): ArgumentDiff {
  const changes: ArgumentChange[] = [];
  let pointerLength = 0;
  let omitted = 0;
  const waiting: Pair[] = [{ pointer: "", before, after }];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const inner = pairsIn(pair);
    for (const each of inner.reverse()) waiting.push(each);
    const change = inner.length > 0 ? undefined : changeOf(pair);
    if (change === undefined) continue;
    pointerLength += change.pointer.length;
    if (changes.length < maxChanges && pointerLength <= maxPointerLength) changes.push(change);
    else omitted += 1;
  }
  return { changes, omitted };
}

/** Pairs the items of two lists or the members of two objects, in order; none for other values. */
function pairsIn({ pointer, before, after }: Pair): Pair[] {
  if (isList(before) && isList(after)) return listPairs(pointer, before, after);
  if (isJsonObject(before) && isJsonObject(after)) return memberPairs(pointer, before, after);
  return [];
}

function changeOf({ pointer, before, after }: Pair): ArgumentChange | undefined {
  if (before === undefined) return after === undefined ? undefined : { pointer, kind: "added", after };
  if (after === undefined) return { pointer, kind: "removed", before };
  return isSameLeaf(before, after) ? undefined : { pointer, kind: "changed", before, after };
}

/** Returns whether two values without pairs are equal. */
function isSameLeaf(before: Json, after: Json): boolean {
  if (isList(before)) return isList(after);
  return isJsonObject(before) ? isJsonObject(after) : before === after;
}

function memberPairs(pointer: string, before: JsonObject, after: JsonObject): Pair[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Array.from(names)
    .sort()
    .map((name) => ({
      pointer: memberPointer(pointer, name),
      before: Object.hasOwn(before, name) ? before[name] : undefined,
      after: Object.hasOwn(after, name) ? after[name] : undefined,
    }));
}

function listPairs(pointer: string, before: readonly Json[], after: readonly Json[]): Pair[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  let tail = 0;
  // Lists of one length are paired by index. That also keeps the whole comparison linear: `isEqual` stops at the next
  // pair of lists that differ in length.
  if (before.length !== after.length) {
    while (head < shorter && isEqual(before[head] as Json, after[head] as Json)) head += 1;
    while (tail < shorter - head && isEqual(before.at(-1 - tail) as Json, after.at(-1 - tail) as Json)) tail += 1;
  }
  const pairs: Pair[] = [];
  for (let index = head; index < Math.max(before.length, after.length) - tail; index += 1) {
    pairs.push({
      pointer: `${pointer}/${index}`,
      before: index < before.length - tail ? before[index] : undefined,
      after: index < after.length - tail ? after[index] : undefined,
    });
  }
  return pairs;
}

/** Returns whether two values are equal, in any order of members. Stops at the first difference. */
function isEqual(one: Json, other: Json): boolean {
  const waiting: (readonly [Json, Json])[] = [[one, other]];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const inner = partsOf(...pair);
    if (inner === undefined) return false;
    for (const each of inner) waiting.push(each);
  }
  return true;
}

/** The inner pairs that decide whether two values are equal; undefined where they differ already. */
function partsOf(one: Json, other: Json): readonly (readonly [Json, Json])[] | undefined {
  if (isList(one) && isList(other)) {
    return one.length === other.length ? one.map((item, index) => [item, other[index] as Json]) : undefined;
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return one === other ? [] : undefined;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length || !names.every((name) => Object.hasOwn(other, name)))
    return undefined;
  return names.map((name) => [one[name] as Json, other[name] as Json]);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
