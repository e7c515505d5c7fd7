import {
  type CelFunc,
  type CelInput,
  type CelList,
  type CelMap,
  CelScalar,
  type CelValue,
  celEnv,
  celError,
  celFunc,
  celList,
  celMethod,
  isCelError,
  isCelList,
  isCelMap,
  listType,
  mapType,
} from "@bufbuild/cel";
import type { Meter } from "./meter.ts";
import type { PatternCache } from "./pattern.ts";
import { textFunctions } from "./text-function.ts";
import { type LeafCache, treeFunctions } from "./tree-function.ts";

const { BOOL, DYN, INT } = CelScalar;
const list = listType(DYN);
const map = mapType(DYN, DYN);
const standard = celEnv().funcs;

/** The prices of standard library functions that cost more than one unit. */
const costly: Readonly<Record<string, number>> = {
  timestamp: 20,
  duration: 20,
  getFullYear: 500,
  getMonth: 500,
  getDate: 500,
  getDayOfMonth: 500,
  getDayOfWeek: 500,
  getDayOfYear: 500,
  getHours: 500,
  getMinutes: 500,
  getSeconds: 500,
  getMilliseconds: 500,
};

/** The longest text that a conversion reads: no number or time is longer, and parsing a longer text is quadratic. */
const maxNumeral = 64;

/**
 * The functions of the language, each charging `meter` for work that grows with its arguments.
 * They replace those of the standard library with the same signature.
 */
export function meteredFunctions(meter: Meter, patterns: PatternCache, leaves: LeafCache): CelFunc[] {
  const equality: Equality = (a, b) => celEquals(a, b, meter, sameByStandard);
  return [
    ...equalityFunctions(equality),
    ...collectionFunctions(meter),
    ...listFunctions(meter, equality),
    ...loopFunctions(meter),
    ...Object.entries(costly).flatMap(([name, units]) => costlyFunctions(name, units, meter)),
    ...conversionFunctions(meter),
    ...textFunctions(meter, patterns),
    ...treeFunctions(meter, leaves),
  ];
}

const sameByStandard = (a: CelValue, b: CelValue): boolean => callStandard("_==_", undefined, [a, b]) === true;

function equalityFunctions(equality: Equality): CelFunc[] {
  return [
    celFunc("_==_", [DYN, DYN], BOOL, (a: CelValue, b: CelValue) => equality(a, b)),
    celFunc("_!=_", [DYN, DYN], BOOL, (a: CelValue, b: CelValue) => !equality(a, b)),
    celFunc("@in", [DYN, list], BOOL, (item: CelValue, items: CelList) => hasEqual(item, items, equality)),
  ];
}

function collectionFunctions(meter: Meter): CelFunc[] {
  const concat = (a: CelList, b: CelList): CelInput<typeof list> => {
    meter.charge(a.size + b.size);
    return celList([...a, ...b]);
  };
  return [
    celFunc("_+_", [list, list], list, concat),
    celFunc("size", [list], INT, (items) => BigInt(items.size)),
    celFunc("size", [map], INT, (members) => BigInt(members.size)),
  ];
}

/**
 * The functions that `instrument` inserts into comprehensions: `@step` charges for one iteration, `@range` for iterating
 * over a range; `@list` and `@append` collect results in one array where the standard library nests a list each time.
 */
function loopFunctions(meter: Meter): CelFunc[] {
  const collected = new WeakMap<CelList, CelValue[]>();
  const start = (): CelList => {
    const items: CelValue[] = [];
    const made = celList(items);
    collected.set(made, items);
    return made;
  };
  const append = (items: CelValue, item: CelValue): CelValue => {
    collected.get(items as CelList)?.push(item);
    return items;
  };
  const step = (units: bigint): boolean => {
    meter.charge(Number(units));
    return true;
  };
  return [
    celFunc("@step", [INT], BOOL, step),
    celFunc("@range", [list], list, (items) => {
      meter.charge(items.size);
      return items;
    }),
    celFunc("@range", [map], map, (members) => {
      meter.charge(members.size);
      return members;
    }),
    celFunc("@list", [], list, start),
    celFunc("@append", [DYN, DYN], DYN, append),
  ];
}

/** The standard overloads of `name`, charged `units`. */
function costlyFunctions(name: string, units: number, meter: Meter): CelFunc[] {
  return Array.from(standard.find(name) ?? [], (overload) => {
    const call = (target: CelValue | undefined, args: CelValue[]): CelValue => {
      meter.charge(units);
      for (const arg of args) checkNumeral(arg);
      return settle(overload.call(0, target, args));
    };
    return redefine(overload, call);
  });
}

/** The text forms of numbers. The standard library also reads `""` as 0, `0x10` as 16 and `abc` as NaN. */
const numeral: Readonly<Record<string, RegExp>> = {
  int: /^-?\d+$/,
  double: /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/,
};

/** Conversions to numbers: bounded; the error never quotes the text, which may be a secret. */
function conversionFunctions(meter: Meter): CelFunc[] {
  return Object.entries(numeral).flatMap(([name, shape]) =>
    Array.from(standard.find(name) ?? [], (overload) =>
      redefine(overload, (target, args) => {
        meter.charge(1);
        const [value] = args;
        if (typeof value === "string") {
          checkNumeral(value);
          if (!shape.test(value)) throw new RangeError(`expected the text of a number for \`${name}\``);
        }
        return settle(overload.call(0, target, args));
      }),
    ),
  );
}

function checkNumeral(value: CelValue): void {
  if (typeof value === "string" && value.length > maxNumeral) {
    throw new RangeError(`expected a text of at most ${maxNumeral} characters, got ${value.length}`);
  }
}

function redefine(overload: CelFunc, call: (target: CelValue | undefined, args: CelValue[]) => CelValue): CelFunc {
  const { name, target, result } = overload;
  const args = [...overload.arguments];
  if (target === undefined) return celFunc(name, args, result, (...given: CelValue[]) => call(undefined, given));
  return celMethod(name, target, args, result, function (this: CelValue, ...given: CelValue[]) {
    return call(this, given);
  });
}

function callStandard(name: string, target: CelValue | undefined, args: CelValue[]): CelValue {
  return settle(standard.find(name)?.call(0, target, args));
}

function settle(result: ReturnType<CelFunc["call"]>): CelValue {
  if (result === undefined) throw celError("no such overload");
  if (isCelError(result)) throw result;
  return result;
}

const listFunction = listType(CelScalar.DYN);

/** The functions over lists, named as in the language's extension for them. */
function listFunctions(meter: Meter, equality: Equality): CelFunc[] {
  return [
    celMethod("distinct", listFunction, [], listFunction, function () {
      return distinct(this, meter, equality);
    }),
    celMethod("flatten", listFunction, [], listFunction, function () {
      return flatten(this, meter);
    }),
  ];
}

/** Removes repeated values, keeping the first. Texts are looked up; other values are compared with each other. */
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

/** Concatenates the lists in a list, one level deep; other items stay in place. */
function flatten(items: CelList, meter: Meter): CelList {
  const flat: CelValue[] = [];
  for (const item of items) {
    meter.charge(isCelList(item) ? 1 + item.size : 1);
    if (isCelList(item)) for (const inner of item) flat.push(inner);
    else flat.push(item);
  }
  return celList(flat);
}

/** Compares values that are neither scalar, list nor map: times and durations. */
type Other = (a: CelValue, b: CelValue) => boolean;

/**
 * CEL equality, charged by node: lists and maps that share parts can be cheap to build and expensive to compare.
 * Numbers compare across `int` and `double`; values of different types are unequal.
 */
function celEquals(a: CelValue, b: CelValue, meter: Meter, other: Other): boolean {
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

/** Compares two values and charges for it. */
type Equality = (a: CelValue, b: CelValue) => boolean;

/** Returns true if one of the candidates equals the item. */
function hasEqual(item: CelValue, candidates: Iterable<CelValue>, equals: Equality): boolean {
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

/** Exact across `int` and `double`, which `===` would treat as different; false for NaN. */
function sameNumber(a: number | bigint, b: number | bigint): boolean {
  return a >= b && a <= b;
}
