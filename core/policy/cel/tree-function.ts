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

/** The leaves that one evaluation has found, by the value they are in; several rules ask for those of the arguments. */
export class LeafMemory {
  // Neither a WeakMap nor `clear`: both let what they held outlive its evaluation in the collector, at twice the cost.
  #found = new Map<CelValue, FoundLeaves>();

  get(value: CelValue): FoundLeaves | undefined {
    return this.#found.get(value);
  }

  keep(value: CelValue, leaves: FoundLeaves): void {
    this.#found.set(value, leaves);
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
 */
export function treeFunctions(meter: Meter, memory: LeafMemory): CelFunc[] {
  const leaves = (value: CelValue): CelList => {
    const known = memory.get(value);
    if (known !== undefined) {
      // The same price the second time: a verdict does not depend on what was asked before.
      meter.charge(known.units);
      return known.texts;
    }
    const before = meter.left;
    const found: CelValue[] = [];
    collect(value, "", found, meter);
    const texts = celList(found);
    memory.keep(value, { texts, units: before - meter.left });
    return texts;
  };
  return [celFunc("leaves", [CelScalar.DYN], list, leaves)];
}

function collect(value: CelValue, key: string, texts: CelValue[], meter: Meter): void {
  meter.charge(leafUnits);
  if (typeof value === "string") texts.push(leaf(key, value));
  else if (isCelList(value)) {
    for (const item of value) collect(item, key, texts, meter);
  } else if (isCelMap(value)) {
    for (const [name, member] of value) {
      if (typeof name === "string") texts.push(leaf("", name));
      collect(member, typeof name === "string" ? name : key, texts, meter);
    }
  }
}

function leaf(key: string, text: string): CelValue {
  return celMap(
    new Map([
      ["key", key],
      ["text", text],
    ]),
  );
}
