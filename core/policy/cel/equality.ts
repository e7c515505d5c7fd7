import { type CelList, type CelMap, type CelValue, isCelList, isCelMap } from "@bufbuild/cel";
import type { Meter } from "./meter.ts";

/** Compares what is neither scalar, list nor map: times, durations. */
type Other = (a: CelValue, b: CelValue) => boolean;

/**
 * CEL equality, paid by the node: lists and maps that share their parts can be small to build and vast to compare.
 * Numbers compare across `int` and `double`; values of different types are unequal.
 */
export function celEquals(a: CelValue, b: CelValue, meter: Meter, other: Other): boolean {
  meter.charge(1);
  if (typeof a === "string") {
    if (typeof b !== "string" || a.length !== b.length) return false;
    meter.chargeText(a.length);
    return a === b;
  }
  if (isNumber(a)) return isNumber(b) && sameNumber(a, b);
  if (typeof a !== "object" || a === null) return a === b;
  if (isCelList(a)) return isCelList(b) && sameItems(a, b, meter, other);
  if (isCelMap(a)) return isCelMap(b) && sameMembers(a, b, meter, other);
  return typeof b === "object" && b !== null && other(a, b);
}

/** Whether two values are equal, paid for. */
export type Equality = (a: CelValue, b: CelValue) => boolean;

/** Whether one of the candidates equals the item. */
export function hasEqual(item: CelValue, candidates: Iterable<CelValue>, equals: Equality): boolean {
  for (const candidate of candidates) if (equals(candidate, item)) return true;
  return false;
}

function sameItems(a: CelList, b: CelList, meter: Meter, other: Other): boolean {
  if (a.size !== b.size) return false;
  const right = b[Symbol.iterator]();
  for (const item of a) {
    if (!celEquals(item, right.next().value as CelValue, meter, other)) return false;
  }
  return true;
}

function sameMembers(a: CelMap, b: CelMap, meter: Meter, other: Other): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const match = b.get(key);
    if (match === undefined || !celEquals(value, match, meter, other)) return false;
  }
  return true;
}

function isNumber(value: CelValue): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** Exact across the two types, which `===` would tell apart; false for NaN. */
function sameNumber(a: number | bigint, b: number | bigint): boolean {
  return a >= b && a <= b;
}
