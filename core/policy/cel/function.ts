import type { CelFunction } from "./evaluator.ts";
import type { Meter } from "./meter.ts";
import type { PatternCache } from "./pattern.ts";
import { sizeOfText, textMethods } from "./text-function.ts";
import { formatTime, hasTimePart, readTimePart, timeParts, toSpan, toTime } from "./time.ts";
import { CelFailure, type CelResult, type CelValue, countItems, isAmong, isInstant, isList, isMap } from "./value.ts";

/** The functions that an expression may call, by name: alone, and behind a receiver. */
export interface FunctionTable {
  readonly functions: ReadonlyMap<string, CelFunction>;
  readonly methods: ReadonlyMap<string, CelFunction>;
}

/** The prices of functions that cost more than one unit. */
const conversionUnits = 20;
const timePartUnits = 500;

/** The longest text that a conversion reads: no number or time is longer, and parsing a longer text is quadratic. */
const maxNumeral = 64;

/** Returns the functions of the language, each charging `meter`. */
export function meteredFunctions(meter: Meter, patterns: PatternCache): FunctionTable {
  const size = sizeFunction(meter);
  return {
    functions: new Map(Object.entries({ size, ...conversionFunctions(meter) })),
    methods: new Map(
      Object.entries({ size, ...listMethods(meter), ...textMethods(meter, patterns), ...timeMethods(meter) }),
    ),
  };
}

function sizeFunction(meter: Meter): CelFunction {
  return (value) => {
    if (typeof value === "string") return BigInt(sizeOfText(value, meter));
    return isList(value) || isMap(value) ? BigInt(countItems(value, meter)) : undefined;
  };
}

/** The text forms of numbers: neither empty nor hexadecimal. */
const intText = /^-?\d+$/;
const doubleText = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

/** Conversions; the errors never quote the text, which may be a secret. */
function conversionFunctions(meter: Meter): Readonly<Record<string, CelFunction>> {
  const timed = (convert: (value: CelValue) => CelResult | undefined): CelFunction => {
    return (value) => {
      const isConvertible = ["string", "bigint"].includes(typeof value) || convert(value) !== undefined;
      if (!isConvertible) return undefined;
      meter.charge(conversionUnits);
      return longNumeral(value) ?? convert(value);
    };
  };
  return {
    int: (value) => toInt(value, meter),
    double: (value) => toDouble(value, meter),
    string: formatScalar,
    timestamp: timed(toTime),
    duration: timed(toSpan),
  };
}

function longNumeral(value: CelValue | undefined): CelFailure | undefined {
  if (typeof value !== "string" || value.length <= maxNumeral) return undefined;
  return new CelFailure(`expected a text of at most ${maxNumeral} characters, got ${value.length}`);
}

function toInt(value: CelValue, meter: Meter): CelResult | undefined {
  const isTime = isInstant(value);
  if (!isTime && !["string", "number", "bigint"].includes(typeof value)) return undefined;
  meter.charge(1);
  if (isTime) return value.seconds;
  if (typeof value === "number") return truncate(value);
  if (typeof value !== "string") return value;
  const long = longNumeral(value);
  if (long !== undefined) return long;
  return intText.test(value) ? int64(BigInt(value), "type conversion") : notNumeral("int");
}

/** The outermost ints as doubles; neither is an int itself. */
const doubleBound = 2 ** 63;

function truncate(value: number): CelResult {
  const isInside = value > -doubleBound && value < doubleBound;
  return isInside ? BigInt(Math.trunc(value)) : new CelFailure("int overflow during type conversion");
}

function toDouble(value: CelValue, meter: Meter): CelResult | undefined {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint") return undefined;
  meter.charge(1);
  if (typeof value !== "string") return Number(value);
  const long = longNumeral(value);
  if (long !== undefined) return long;
  return doubleText.test(value) ? Number(value) : notNumeral("double");
}

function notNumeral(name: string): CelFailure {
  return new CelFailure(`expected the text of a number for \`${name}\``);
}

function formatScalar(value: CelValue): CelResult | undefined {
  if (isInstant(value)) return formatTime(value);
  return typeof value === "object" ? undefined : String(value);
}

const maxInt = 9_223_372_036_854_775_807n;
const minInt = -9_223_372_036_854_775_808n;

/** Returns an int that fits into 64 bits, or the failure of the operation that made it. */
export function int64(value: bigint, operation: string): CelResult {
  return value >= minInt && value <= maxInt ? value : new CelFailure(`int overflow during ${operation}`);
}

/** The methods of lists; `distinct` and `flatten` are named as in the language's extension for them. */
function listMethods(meter: Meter): Readonly<Record<string, CelFunction>> {
  return {
    distinct: (items) => (isList(items) ? distinct(items, meter) : undefined),
    flatten: (items) => (isList(items) ? flatten(items, meter) : undefined),
  };
}

/** Removes repeated values, keeping the first. Texts are looked up; other values are compared with each other. */
function distinct(items: readonly CelValue[], meter: Meter): readonly CelValue[] {
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
      if (isAmong(item, others, meter)) continue;
      others.push(item);
    }
    found.push(item);
  }
  return found;
}

/** Concatenates the lists in a list, one level deep; other items stay in place. */
function flatten(items: readonly CelValue[], meter: Meter): readonly CelValue[] {
  const flat: CelValue[] = [];
  for (const item of items) {
    meter.charge(isList(item) ? 1 + item.length : 1);
    if (isList(item)) for (const inner of item) flat.push(inner);
    else flat.push(item);
  }
  return flat;
}

function timeMethods(meter: Meter): Readonly<Record<string, CelFunction>> {
  return Object.fromEntries(
    timeParts.map((name): [string, CelFunction] => [
      name,
      (value, zone) => {
        if (!hasTimePart(name, value, zone)) return undefined;
        meter.charge(timePartUnits);
        return longNumeral(zone) ?? readTimePart(name, value, zone);
      },
    ]),
  );
}
