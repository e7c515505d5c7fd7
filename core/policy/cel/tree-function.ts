import {
  type CelFunc,
  type CelList,
  CelScalar,
  type CelValue,
  celFunc,
  celList,
  isCelList,
  isCelMap,
  listType,
} from "@bufbuild/cel";
import type { Meter } from "./meter.ts";
import { celRecord } from "./value.ts";

const list = listType(CelScalar.DYN);

/** What finding one leaf costs. */
const leafUnits = 4;

/**
 * `leaves(value)`: every text inside a JSON value, at any depth, names of members included, as a list of
 * `{key, text}`; `key` is the nearest member's name (`""` where there is none, and for the names themselves).
 * CEL has no recursion, and a path may be an argument's argument.
 */
export function treeFunctions(meter: Meter): CelFunc[] {
  const kept = new WeakMap<object, { readonly texts: CelList; readonly units: number }>();
  const leaves = (value: CelValue): CelList => {
    const node = typeof value === "object" && value !== null ? value : undefined;
    const known = node === undefined ? undefined : kept.get(node);
    if (known !== undefined) {
      // The same price the second time: a verdict does not depend on what was asked before.
      meter.charge(known.units);
      return known.texts;
    }
    const before = meter.left;
    const found: CelValue[] = [];
    collect(value, "", found, meter);
    const texts = celList(found);
    if (node !== undefined) kept.set(node, { texts, units: before - meter.left });
    return texts;
  };
  return [celFunc("leaves", [CelScalar.DYN], list, leaves)];
}

function collect(value: CelValue, key: string, texts: CelValue[], meter: Meter): void {
  meter.charge(leafUnits);
  if (typeof value === "string") texts.push(celRecord({ key, text: value }));
  else if (isCelList(value)) {
    for (const item of value) collect(item, key, texts, meter);
  } else if (isCelMap(value)) {
    for (const [name, member] of value) {
      if (typeof name === "string") texts.push(celRecord({ key: "", text: name }));
      collect(member, typeof name === "string" ? name : key, texts, meter);
    }
  }
}
