import type { JsonObject } from "../../action/json.ts";
import type { Meter } from "./meter.ts";

/** A value of the language that JSON does not have. */
export abstract class TypedValue {
  /** The name of the type, as errors write it. */
  abstract readonly type: string;
}

/** A value during an evaluation. JSON stays as it is: an object is a map of its own keys, a number is a double. */
export type CelValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly CelValue[]
  | JsonObject
  | CelMap
  | Timestamp
  | TimeSpan;

export type MapKey = string | bigint | boolean;
type AnyMap = CelMap | JsonObject;

/** The reason why an expression has no value. Its message is safe to record; `||`, `&&` and loops can absorb it. */
export class CelFailure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

export type CelResult = CelValue | CelFailure;

/** A map written in an expression: its keys can be ints and bools. */
export class CelMap extends TypedValue {
  readonly type = "map";
  readonly entries: ReadonlyMap<MapKey, CelValue>;

  constructor(entries: ReadonlyMap<MapKey, CelValue>) {
    super();
    this.entries = entries;
  }
}

/** A span of time or a moment: seconds, and nanoseconds beside them. */
abstract class Instant extends TypedValue {
  readonly seconds: bigint;
  readonly nanos: number;

  constructor(seconds: bigint, nanos: number) {
    super();
    this.seconds = seconds;
    this.nanos = nanos;
  }
}

/** A moment; counted from 1970. */
export class Timestamp extends Instant {
  readonly type = "google.protobuf.Timestamp";
}

/** The distance of two moments; both parts have its sign. */
export class TimeSpan extends Instant {
  readonly type = "google.protobuf.Duration";
}

export function isInstant(value: CelValue): value is Timestamp | TimeSpan {
  return value instanceof Instant;
}

/** The name of a value's type, as errors write it. */
export function typeOf(value: CelValue): string {
  if (typeof value === "object") {
    if (value === null) return "null_type";
    if (isList(value)) return "list";
    return value instanceof TypedValue ? value.type : "map";
  }
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  return typeof value === "bigint" ? "int" : "double";
}

export const isList: (value: CelValue) => value is readonly CelValue[] = Array.isArray;

export function isMap(value: CelValue): value is AnyMap {
  if (typeof value !== "object" || value === null || isList(value)) return false;
  return !(value instanceof TypedValue) || value instanceof CelMap;
}

/** The number of items of a list, or of members of a map: they are listed to be counted, and charged for. */
export function countItems(value: readonly CelValue[] | AnyMap, meter: Meter): number {
  if (isList(value)) return value.length;
  const count = value instanceof CelMap ? value.entries.size : Object.keys(value).length;
  meter.charge(count);
  return count;
}

export function keysOf(map: AnyMap): readonly MapKey[] {
  return map instanceof CelMap ? Array.from(map.entries.keys()) : Object.keys(map);
}

export function entriesOf(map: AnyMap): Iterable<readonly [MapKey, CelValue]> {
  return map instanceof CelMap ? map.entries : Object.entries(map);
}

/** Returns the member of a map; undefined where it has none. A double finds the int that it equals. */
export function lookUp(map: AnyMap, key: MapKey | number): CelValue | undefined {
  if (!(map instanceof CelMap))
    return typeof key === "string" && Object.hasOwn(map, key) ? (map[key] as CelValue) : undefined;
  if (typeof key !== "number") return map.entries.get(key);
  return Number.isInteger(key) ? map.entries.get(BigInt(key)) : undefined;
}

/** Returns the field of a value; undefined where it has none. */
export function fieldOf(value: CelValue, name: string): CelValue | undefined {
  if (typeof value !== "object" || value === null || isList(value)) return undefined;
  if (!(value instanceof TypedValue)) return Object.hasOwn(value, name) ? value[name] : undefined;
  if (value instanceof CelMap) return value.entries.get(name);
  if (name === "seconds") return value.seconds;
  return name === "nanos" ? BigInt(value.nanos) : undefined;
}

/** Returns true where a map has a member that is not null. */
export function hasEntry(map: AnyMap, key: MapKey | number): boolean {
  const member = lookUp(map, key);
  return member !== undefined && member !== null;
}

/**
 * Compares by the rules of CEL and charges by node: lists and maps that share parts can be cheap to build and expensive
 * to compare. Numbers compare across `int` and `double`; values of different types are unequal.
 */
export function isEqual(a: CelValue, b: CelValue, meter: Meter): boolean {
  meter.charge(1);
  if (typeof a === "string") {
    if (typeof b !== "string" || a.length !== b.length) return false;
    meter.charge(1, a.length);
    return a === b;
  }
  if (isNumber(a)) return isNumber(b) && isSameNumber(a, b);
  if (typeof a !== "object" || a === null) return a === b;
  if (isList(a)) return isList(b) && haveEqualItems(a, b, meter);
  if (isMap(a)) return isMap(b) && haveEqualMembers(a, b, meter);
  return isInstant(b) && b.type === a.type && b.seconds === a.seconds && b.nanos === a.nanos;
}

/** Returns true if one of the candidates equals the item. */
export function isAmong(item: CelValue, candidates: readonly CelValue[], meter: Meter): boolean {
  for (const candidate of candidates) if (isEqual(candidate, item, meter)) return true;
  return false;
}

function haveEqualItems(a: readonly CelValue[], b: readonly CelValue[], meter: Meter): boolean {
  if (a.length !== b.length) return false;
  for (const [index, item] of a.entries()) if (!isEqual(item, b[index] as CelValue, meter)) return false;
  return true;
}

function haveEqualMembers(a: AnyMap, b: AnyMap, meter: Meter): boolean {
  if (countItems(a, meter) !== countItems(b, meter)) return false;
  for (const [key, value] of entriesOf(a)) {
    const other = lookUp(b, key);
    if (other === undefined || !isEqual(value, other, meter)) return false;
  }
  return true;
}

function isNumber(value: CelValue): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** Exact across `int` and `double`, which `===` would treat as different; false for NaN. */
function isSameNumber(a: number | bigint, b: number | bigint): boolean {
  return a >= b && a <= b;
}

/**
 * Orders two values: negative, zero or positive; NaN beside a double that is none; undefined where their types have no
 * order. An int beside a double is compared as a double.
 */
export function compareValues(a: CelValue, b: CelValue, meter: Meter): number | undefined {
  if (isNumber(a)) return isNumber(b) ? orderNumbers(a, b) : undefined;
  if (typeof a === "string") {
    if (typeof b !== "string") return undefined;
    meter.charge(1, Math.min(a.length, b.length));
    return a < b ? -1 : Number(a > b);
  }
  if (typeof a === "boolean") return typeof b === "boolean" ? Number(a) - Number(b) : undefined;
  if (!isInstant(a) || !isInstant(b) || a.type !== b.type) return undefined;
  return a.seconds === b.seconds ? a.nanos - b.nanos : Number(a.seconds > b.seconds) * 2 - 1;
}

function orderNumbers(a: number | bigint, b: number | bigint): number {
  if (typeof a === "bigint" && typeof b === "bigint") return a < b ? -1 : Number(a > b);
  const left = Number(a);
  const right = Number(b);
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : Number.NaN;
}
