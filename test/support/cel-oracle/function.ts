import {
  type CelFunc,
  type CelList,
  type CelMap,
  CelScalar,
  type CelValue,
  celEnv,
  celError,
  celFunc,
  celList,
  celMap,
  celMethod,
  isCelError,
  isCelList,
  isCelMap,
  listType,
  mapType,
} from "@bufbuild/cel";
import type { Meter } from "../../../core/policy/cel/meter.ts";
import { timeParts } from "../../../core/policy/cel/time.ts";
import type { OraclePatterns } from "./pattern.ts";
import { textFunctions } from "./text-function.ts";

const { BOOL, DYN, INT } = CelScalar;
const list = listType(DYN);
const map = mapType(DYN, DYN);
const standard = celEnv().funcs;

/** The prices of standard library functions that cost more than one unit. */
const costly: readonly (readonly [name: string, units: number])[] = [
  ["timestamp", 20],
  ["duration", 20],
  ...timeParts.map((name) => [name, 500] as const),
];

/** The longest text that a conversion reads: no number or time is longer, and parsing a longer text is quadratic. */
const maxNumeral = 64;

/**
 * The functions of the language, each charging `meter` for work that grows with its arguments.
 * They replace those of the standard library with the same signature.
 */
export function meteredFunctions(meter: Meter, patterns: OraclePatterns, leaves: LeafCache): CelFunc[] {
  return [
    ...equalityFunctions(meter),
    ...listFunctions(meter),
    ...mapFunctions(meter),
    ...loopFunctions(meter),
    ...costly.flatMap(([name, units]) => costlyFunctions(name, units, meter)),
    ...conversionFunctions(meter),
    ...textFunctions(meter, patterns),
    ...treeFunctions(meter, leaves),
  ];
}

function mapFunctions(meter: Meter): CelFunc[] {
  const size = (members: CelMap): bigint => {
    meter.charge(members.size);
    return BigInt(members.size);
  };
  return [
    celFunc("size", [map], INT, size),
    celMethod("size", map, [], INT, function () {
      return size(this);
    }),
  ];
}

function equalityFunctions(meter: Meter): CelFunc[] {
  return [
    celFunc("_==_", [DYN, DYN], BOOL, (a: CelValue, b: CelValue) => celEquals(a, b, meter)),
    celFunc("_!=_", [DYN, DYN], BOOL, (a: CelValue, b: CelValue) => !celEquals(a, b, meter)),
    celFunc("@in", [DYN, list], BOOL, (item: CelValue, items: CelList) => hasEqual(item, items, meter)),
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
  const range = <T extends CelList | CelMap>(items: T): T => {
    meter.charge(items.size);
    return items;
  };
  return [
    celFunc("@step", [INT], BOOL, step),
    celFunc("@range", [list], list, range<CelList>),
    celFunc("@range", [map], map, range<CelMap>),
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

function settle(result: ReturnType<CelFunc["call"]>): CelValue {
  if (result === undefined) throw celError("no such overload");
  if (isCelError(result)) throw result;
  return result;
}

/** The functions over lists; `distinct` and `flatten` are named as in the language's extension for them. */
function listFunctions(meter: Meter): CelFunc[] {
  const concat = (a: CelList, b: CelList): CelList => {
    meter.charge(a.size + b.size);
    return celList([...a, ...b]);
  };
  return [
    celFunc("_+_", [list, list], list, concat),
    celMethod("distinct", list, [], list, function () {
      return distinct(this, meter);
    }),
    celMethod("flatten", list, [], list, function () {
      return flatten(this, meter);
    }),
  ];
}

/** Removes repeated values, keeping the first. Texts are looked up; other values are compared with each other. */
function distinct(items: CelList, meter: Meter): CelList {
  const texts = new Set<string>();
  const others: CelValue[] = [];
  const found: CelValue[] = [];
  for (const item of items) {
    if (typeof item === "string") {
      meter.charge(1, item.length);
      if (texts.has(item)) continue;
      texts.add(item);
    } else {
      meter.charge(1);
      if (hasEqual(item, others, meter)) continue;
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

/**
 * CEL equality, charged by node: lists and maps that share parts can be cheap to build and expensive to compare.
 * Numbers compare across `int` and `double`; values of different types are unequal.
 */
function celEquals(a: CelValue, b: CelValue, meter: Meter): boolean {
  meter.charge(1);
  if (typeof a === "string") {
    if (typeof b !== "string" || a.length !== b.length) return false;
    meter.charge(1, a.length);
    return a === b;
  }
  if (isNumber(a)) return isNumber(b) && sameNumber(a, b);
  if (typeof a !== "object" || a === null) return a === b;
  if (isCelList(a)) return isCelList(b) && sameItems(a, b, meter);
  if (isCelMap(a)) return isCelMap(b) && sameMembers(a, b, meter);
  // Times and durations.
  return typeof b === "object" && b !== null && settle(standard.find("_==_")?.call(0, undefined, [a, b])) === true;
}

/** Returns true if one of the candidates equals the item. */
function hasEqual(item: CelValue, candidates: Iterable<CelValue>, meter: Meter): boolean {
  for (const candidate of candidates) if (celEquals(candidate, item, meter)) return true;
  return false;
}

function sameItems(a: CelList, b: CelList, meter: Meter): boolean {
  if (a.size !== b.size) return false;
  const right = b[Symbol.iterator]();
  for (const item of a) {
    if (!celEquals(item, right.next().value as CelValue, meter)) return false;
  }
  return true;
}

function sameMembers(a: CelMap, b: CelMap, meter: Meter): boolean {
  meter.charge(a.size + b.size);
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const match = b.get(key);
    if (match === undefined || !celEquals(value, match, meter)) return false;
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
function treeFunctions(meter: Meter, cache: LeafCache): CelFunc[] {
  const leaves = (value: CelValue, limit?: bigint): CelList => {
    const max = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
    const found = cache.byValue.get(value) ?? new Map<number, FoundLeaves>();
    const known = found.get(max);
    if (known !== undefined) {
      // Same price the second time: a verdict does not depend on what was evaluated before.
      meter.charge(known.units);
      return known.texts;
    }
    const before = meter.left;
    const harvest = { texts: [], left: max } satisfies Harvest;
    collect(value, "", leafUnits, harvest, meter);
    const texts = celList(harvest.texts);
    cache.byValue.set(value, found.set(max, { texts, units: before - meter.left }));
    return texts;
  };
  return [celFunc("leaves", [DYN], list, leaves), celFunc("leaves", [DYN, INT], list, leaves)];
}

interface Harvest {
  readonly texts: CelValue[];
  /** Characters left to collect. */
  left: number;
}

/** Collects the leaves of a value for `units`; a member's name costs nothing beside the member. */
function collect(value: CelValue, key: string, units: number, harvest: Harvest, meter: Meter): void {
  if (harvest.left <= 0) return;
  meter.charge(units);
  if (typeof value === "string") {
    harvest.left -= leafCharacters;
    if (harvest.left <= 0) return;
    const text = value.slice(0, harvest.left);
    harvest.texts.push(celMap(new Map(Object.entries({ key, text }))));
    harvest.left -= value.length;
  } else if (isCelList(value)) {
    for (const item of value) {
      if (harvest.left <= 0) return;
      collect(item, key, leafUnits, harvest, meter);
    }
  } else if (isCelMap(value)) {
    for (const [name, member] of value) {
      meter.charge(1);
      if (typeof name === "string") collect(name, "", 0, harvest, meter);
      collect(member, typeof name === "string" ? name : key, leafUnits - 1, harvest, meter);
    }
  }
}
