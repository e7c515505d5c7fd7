import {
  type CelFunc,
  type CelList,
  CelScalar,
  type CelValue,
  celFunc,
  celList,
  celMap,
  isCelList,
  isCelMap,
  listType,
} from "@bufbuild/cel";
import type { Meter } from "./meter.ts";

const list = listType(CelScalar.DYN);

/** The price of finding one leaf. */
const leafUnits = 4;
/** Characters that a leaf counts for beside its own, where the number of characters is limited. */
const leafCharacters = 16;

/**
 * The leaves found during one evaluation, by value and limit; several rules read those of the arguments.
 * Replaced as a whole, neither cleared nor weak: both of those kept the values alive longer, at twice the cost.
 */
export class LeafCache {
  byValue: Map<CelValue, Map<number, FoundLeaves>> = new Map();
}

interface FoundLeaves {
  readonly texts: CelList;
  readonly units: number;
}

/**
 * `leaves(value)`: every text inside a JSON value, at any depth, names of members included, as a list of
 * `{key, text}`; `key` is the nearest member's name (`""` where there is none, and for the names themselves).
 * CEL has no recursion, and a path may be nested in an argument.
 *
 * `leaves(value, max)`: the first of them, up to `max` characters, each leaf counted as 16 more; the last one is cut.
 * A rule can thus search a value of any size at a known price.
 */
export function treeFunctions(meter: Meter, cache: LeafCache): CelFunc[] {
  const leaves = (value: CelValue, max: number): CelList => {
    const found = cache.byValue.get(value) ?? new Map<number, FoundLeaves>();
    const known = found.get(max);
    if (known !== undefined) {
      // Same price the second time: a verdict does not depend on what was evaluated before.
      meter.charge(known.units);
      return known.texts;
    }
    const before = meter.left;
    const harvest = { texts: [], left: max } satisfies Harvest;
    collect(value, "", harvest, meter);
    const texts = celList(harvest.texts);
    cache.byValue.set(value, found.set(max, { texts, units: before - meter.left }));
    return texts;
  };
  return [
    celFunc("leaves", [CelScalar.DYN], list, (value: CelValue) => leaves(value, Number.POSITIVE_INFINITY)),
    celFunc("leaves", [CelScalar.DYN, CelScalar.INT], list, (value: CelValue, max: bigint) =>
      leaves(value, Number(max)),
    ),
  ];
}

interface Harvest {
  readonly texts: CelValue[];
  /** Characters left to collect. */
  left: number;
}

function collect(value: CelValue, key: string, harvest: Harvest, meter: Meter): void {
  if (harvest.left <= 0) return;
  meter.charge(leafUnits);
  if (typeof value === "string") addLeaf(key, value, harvest);
  else if (isCelList(value)) {
    for (const item of value) {
      if (harvest.left <= 0) return;
      collect(item, key, harvest, meter);
    }
  } else if (isCelMap(value)) {
    for (const [name, member] of value) {
      if (harvest.left <= 0) return;
      if (typeof name === "string") addLeaf("", name, harvest);
      collect(member, typeof name === "string" ? name : key, harvest, meter);
    }
  }
}

function addLeaf(key: string, text: string, harvest: Harvest): void {
  harvest.left -= leafCharacters;
  if (harvest.left <= 0) return;
  const shown = text.length > harvest.left ? text.slice(0, harvest.left) : text;
  const members: [string, string][] = [
    ["key", key],
    ["text", shown],
  ];
  harvest.texts.push(celMap(new Map(members)));
  harvest.left -= text.length;
}
