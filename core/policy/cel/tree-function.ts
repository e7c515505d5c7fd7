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

/** What finding one leaf costs. */
const leafUnits = 4;
/** What a leaf counts for beside its characters, where only so much is looked at. */
const leafCharacters = 16;

/** The leaves that one evaluation has found, by the value they are in; several rules ask for those of the arguments. */
export class LeafMemory {
  // Neither a WeakMap nor `clear`: both let what they held outlive its evaluation in the collector, at twice the cost.
  #found = new Map<CelValue, Map<number, FoundLeaves>>();

  /** `most` as it was asked for. */
  get(value: CelValue, most: number): FoundLeaves | undefined {
    return this.#found.get(value)?.get(most);
  }

  keep(value: CelValue, most: number, leaves: FoundLeaves): void {
    const kept = this.#found.get(value) ?? new Map<number, FoundLeaves>();
    this.#found.set(value, kept.set(most, leaves));
  }

  /** Lets go of everything. */
  clear(): void {
    this.#found = new Map();
  }
}

interface FoundLeaves {
  readonly texts: CelList;
  readonly units: number;
}

/**
 * `leaves(value)`: every text inside a JSON value, at any depth, names of members included, as a list of
 * `{key, text}`; `key` is the nearest member's name (`""` where there is none, and for the names themselves).
 * CEL has no recursion, and a path may be an argument's argument.
 *
 * `leaves(value, most)`: the first of them, as far as `most` characters reach, each leaf counted as 16 more; the last
 * one is cut. So a rule may look into what has any size, and knows what that costs.
 */
export function treeFunctions(meter: Meter, memory: LeafMemory): CelFunc[] {
  const leaves = (value: CelValue, most: number): CelList => {
    const known = memory.get(value, most);
    if (known !== undefined) {
      // The same price the second time: a verdict does not depend on what was asked before.
      meter.charge(known.units);
      return known.texts;
    }
    const before = meter.left;
    const harvest = { texts: [], left: most } satisfies Harvest;
    collect(value, "", harvest, meter);
    const texts = celList(harvest.texts);
    memory.keep(value, most, { texts, units: before - meter.left });
    return texts;
  };
  return [
    celFunc("leaves", [CelScalar.DYN], list, (value: CelValue) => leaves(value, Number.POSITIVE_INFINITY)),
    celFunc("leaves", [CelScalar.DYN, CelScalar.INT], list, (value: CelValue, most: bigint) =>
      leaves(value, Number(most)),
    ),
  ];
}

interface Harvest {
  readonly texts: CelValue[];
  /** Characters that may still be taken. */
  left: number;
}

function collect(value: CelValue, key: string, harvest: Harvest, meter: Meter): void {
  if (harvest.left <= 0) return;
  meter.charge(leafUnits);
  if (typeof value === "string") take(key, value, harvest);
  else if (isCelList(value)) {
    for (const item of value) {
      if (harvest.left <= 0) return;
      collect(item, key, harvest, meter);
    }
  } else if (isCelMap(value)) {
    for (const [name, member] of value) {
      if (harvest.left <= 0) return;
      if (typeof name === "string") take("", name, harvest);
      collect(member, typeof name === "string" ? name : key, harvest, meter);
    }
  }
}

function take(key: string, text: string, harvest: Harvest): void {
  harvest.left -= leafCharacters;
  if (harvest.left <= 0) return;
  harvest.texts.push(leaf(key, text.length > harvest.left ? text.slice(0, harvest.left) : text));
  harvest.left -= text.length;
}

function leaf(key: string, text: string): CelValue {
  return celMap(
    new Map([
      ["key", key],
      ["text", text],
    ]),
  );
}
