import type { CelFunction } from "./evaluator.ts";
import { int64 } from "./function.ts";
import type { Meter } from "./meter.ts";
import { chargeNew } from "./text-function.ts";
import { addTimes, subtractTimes } from "./time.ts";
import {
  CelFailure,
  type CelResult,
  type CelValue,
  compareValues,
  fieldOf,
  hasEntry,
  isAmong,
  isEqual,
  isList,
  isMap,
  lookUp,
} from "./value.ts";

/** An operator between two values; undefined where it has no meaning for their types. */
type BinaryOperator = (a: CelValue, b: CelValue) => CelResult | undefined;

/** The tests of the ordering operators, on what `compareValues` returns. */
export const orderTests: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ["_<_", (order) => order < 0],
  ["_<=_", (order) => order <= 0],
  ["_>_", (order) => order > 0],
  ["_>=_", (order) => order >= 0],
]);

/** Returns the operators between two values, each charging `meter` for work that grows with them. */
export function binaryOperators(meter: Meter): ReadonlyMap<string, CelFunction> {
  const operators = new Map<string, BinaryOperator>([
    ["_==_", (a, b) => isEqual(a, b, meter)],
    ["_!=_", (a, b) => !isEqual(a, b, meter)],
    ["@in", (a, b) => isIn(a, b, meter)],
    ["_+_", adder(meter)],
    ["_-_", subtract],
    ["_*_", multiply],
    ["_/_", divide],
    ["_%_", modulo],
  ]);
  for (const [name, test] of orderTests) {
    operators.set(name, (a, b) => {
      const order = compareValues(a, b, meter);
      return order === undefined ? undefined : test(order);
    });
  }
  return operators as ReadonlyMap<string, CelFunction>;
}

function isIn(item: CelValue, items: CelValue, meter: Meter): boolean | undefined {
  if (isList(items)) return isAmong(item, items, meter);
  if (!isMap(items) || typeof item === "object") return undefined;
  return hasEntry(items, item);
}

/** `+`: concatenates texts and lists, and adds everything else. */
function adder(meter: Meter): BinaryOperator {
  return (a, b) => {
    if (typeof a === "string") {
      return typeof b === "string" ? (chargeNew(meter, a.length + b.length) ?? a + b) : undefined;
    }
    if (typeof a === "number") return typeof b === "number" ? a + b : undefined;
    if (typeof a === "bigint") return typeof b === "bigint" ? int64(a + b, "_+_") : undefined;
    if (!isList(a)) return addTimes(a, b);
    if (!isList(b)) return undefined;
    meter.charge(a.length + b.length);
    return [...a, ...b];
  };
}

function subtract(a: CelValue, b: CelValue): CelResult | undefined {
  if (typeof a === "number") return typeof b === "number" ? a - b : undefined;
  if (typeof a === "bigint") return typeof b === "bigint" ? int64(a - b, "_-_") : undefined;
  return subtractTimes(a, b);
}

function multiply(a: CelValue, b: CelValue): CelResult | undefined {
  if (typeof a === "number") return typeof b === "number" ? a * b : undefined;
  return typeof a === "bigint" && typeof b === "bigint" ? int64(a * b, "_*_") : undefined;
}

function divide(a: CelValue, b: CelValue): CelResult | undefined {
  if (typeof a === "number") return typeof b === "number" ? a / b : undefined;
  if (typeof a !== "bigint" || typeof b !== "bigint") return undefined;
  return b === 0n ? new CelFailure("int divide by zero") : int64(a / b, `divide by ${b}`);
}

function modulo(a: CelValue, b: CelValue): CelResult | undefined {
  if (typeof a !== "bigint" || typeof b !== "bigint") return undefined;
  return b === 0n ? new CelFailure("int modulus by zero") : a % b;
}

/** Negates a number; undefined for other types. */
export function negate(value: CelValue): CelResult | undefined {
  if (typeof value === "number") return -value;
  return typeof value === "bigint" ? int64(-value, "type conversion") : undefined;
}

/**
 * Returns what `collection[key]` names, or the failure. A computed key may be a secret: the failure does not quote it.
 */
export function elementOf(collection: CelValue, key: CelValue, isLiteral: boolean): CelResult {
  if (typeof key === "object") return new CelFailure("unsupported key type");
  const element = typeof key === "string" ? fieldOf(collection, key) : itemOf(collection, key);
  if (element !== undefined) return element;
  if (typeof key === "number" || typeof key === "bigint") return new CelFailure(`index ${key} out of bounds [0, -1)`);
  return new CelFailure(isLiteral ? `field not found: ${key}` : "field not found: the one of a computed name");
}

function itemOf(collection: CelValue, key: boolean | number | bigint): CelValue | undefined {
  if (isMap(collection)) return lookUp(collection, key);
  const index = Number(key);
  if (!isList(collection) || index < 0 || index >= collection.length) return undefined;
  const item = collection[index];
  // Thrown, not returned: nothing absorbs an index between two items.
  if (item === undefined) throw new RangeError("expected an index without a fraction");
  return item;
}
