import type { Meter } from "./meter.ts";
import { type CelValue, entriesOf, isList, isMap } from "./value.ts";

/** The price of finding one leaf. */
const leafUnits = 4;
/** Characters that a leaf counts for beside its own, where the number of characters is limited. */
const leafCharacters = 16;

/** A text in a JSON value, and the nearest member's name: `""` where there is none, and for the names themselves. */
interface Leaf {
  readonly key: string;
  readonly text: string;
  readonly [name: string]: string;
}

interface FoundLeaves {
  readonly leaves: readonly Leaf[];
  readonly units: number;
}

/** The leaves found for one action, by value and limit; several rules read those of the arguments. */
export type LeafCache = Map<CelValue, Map<number, FoundLeaves>>;

/**
 * Finds every text inside a JSON value, at any depth, names of members included: CEL has no recursion, and a path may
 * be nested in an argument. With `max`, the first of them up to so many characters, each leaf counted as 16 more; the
 * last one is cut. A rule can thus search a value of any size at a known price.
 */
export function findLeaves(cache: LeafCache, value: CelValue, max: number, meter: Meter): readonly Leaf[] {
  const found = cache.get(value) ?? new Map<number, FoundLeaves>();
  const known = found.get(max);
  if (known !== undefined) {
    // Same price the second time: a verdict does not depend on what was evaluated before.
    meter.charge(known.units);
    return known.leaves;
  }
  const before = meter.left;
  const leaves: Leaf[] = [];
  collect(value, "", leafUnits, { leaves, left: max }, meter);
  cache.set(value, found.set(max, { leaves, units: before - meter.left }));
  return leaves;
}

interface Harvest {
  readonly leaves: Leaf[];
  /** Characters left to collect. */
  left: number;
}

/** Collects the leaves of a value for `units`; a member's name costs nothing beside the member. */
function collect(value: CelValue, key: string, units: number, harvest: Harvest, meter: Meter): void {
  if (harvest.left <= 0) return;
  meter.charge(units);
  if (typeof value === "string") {
    harvest.left -= leafCharacters;
    if (harvest.left > 0) harvest.leaves.push({ key, text: value.slice(0, harvest.left) });
    harvest.left -= value.length;
  } else if (isList(value)) {
    for (const item of value) {
      if (harvest.left <= 0) return;
      collect(item, key, leafUnits, harvest, meter);
    }
  } else if (isMap(value)) {
    for (const [name, member] of entriesOf(value)) {
      // It was listed, whether there is room for it or not.
      meter.charge(1);
      if (typeof name === "string") collect(name, "", 0, harvest, meter);
      collect(member, typeof name === "string" ? name : key, leafUnits - 1, harvest, meter);
    }
  }
}
