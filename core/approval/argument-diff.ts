import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { memberPointer } from "../action/json-pointer.ts";

/**
 * One difference. `pointer` (RFC 6901) leads to the place in `before` where something was removed, in `after` where
 * something was added, and in both where a value changed.
 */
export type ArgumentChange =
  | { readonly pointer: string; readonly kind: "added"; readonly after: Json }
  | { readonly pointer: string; readonly kind: "removed"; readonly before: Json }
  | { readonly pointer: string; readonly kind: "changed"; readonly before: Json; readonly after: Json };

interface ArgumentDiff {
  readonly changes: readonly ArgumentChange[];
  /** How many changes more there are than are told; 0 where all are. */
  readonly omitted: number;
}

/** A place in both values; undefined where one has nothing there. */
interface Pair {
  readonly pointer: string;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** Pointers hold the names of members, which are as long as an agent likes. */
const maxPointerLength = 262_144;

/**
 * What differs between two values, in the order of their members' names and of their lists; at most `most` changes, and
 * how many more there are. Lists are compared item by item behind their equal beginning and before their equal end.
 * Linear but for sorting names, at any depth.
 */
export function diffArguments(before: Json, after: Json, most = 200): ArgumentDiff {
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
    if (changes.length < most && pointerLength <= maxPointerLength) changes.push(change);
    else omitted += 1;
  }
  return { changes, omitted };
}

/** The places inside two lists or two objects, in order; none where the values are to be compared as they are. */
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

/** Whether two values without anything inside that could be paired are equal. */
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
  // In lists of one length every item has its partner already. That also keeps the whole linear: a walk by `isEqual`
  // turns back at the next pair of lists that differ in length.
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

/** Whether two values say the same, whatever the order of their members; stops at the first difference. */
function isEqual(one: Json, other: Json): boolean {
  const waiting: (readonly [Json, Json])[] = [[one, other]];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const inner = partsOf(...pair);
    if (inner === undefined) return false;
    for (const each of inner) waiting.push(each);
  }
  return true;
}

/** The parts that must be equal for two values to be; undefined where they differ already. */
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
