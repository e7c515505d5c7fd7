import {
  type CelFunc,
  type CelList,
  CelScalar,
  type CelValue,
  celList,
  celMethod,
  isCelList,
  listType,
} from "@bufbuild/cel";
import { type Equality, hasEqual } from "./equality.ts";
import type { Meter } from "./meter.ts";

const list = listType(CelScalar.DYN);

/** The functions over lists, named as in the language's extension for them. */
export function listFunctions(meter: Meter, equality: Equality): CelFunc[] {
  return [
    celMethod("distinct", list, [], list, function () {
      return distinct(this, meter, equality);
    }),
    celMethod("flatten", list, [], list, function () {
      return flatten(this, meter);
    }),
  ];
}

/** Each value once, where it came first. Texts are looked up; what else there is gets compared with one another. */
function distinct(items: CelList, meter: Meter, equality: Equality): CelList {
  const texts = new Set<string>();
  const others: CelValue[] = [];
  const found: CelValue[] = [];
  for (const item of items) {
    if (typeof item === "string") {
      meter.chargeText(item.length);
      if (texts.has(item)) continue;
      texts.add(item);
    } else {
      meter.charge(1);
      if (hasEqual(item, others, equality)) continue;
      others.push(item);
    }
    found.push(item);
  }
  return celList(found);
}

/** The lists in a list laid end to end, one level deep; what is no list stays where it is. */
function flatten(items: CelList, meter: Meter): CelList {
  const flat: CelValue[] = [];
  for (const item of items) {
    meter.charge(isCelList(item) ? 1 + item.size : 1);
    if (isCelList(item)) for (const inner of item) flat.push(inner);
    else flat.push(item);
  }
  return celList(flat);
}
