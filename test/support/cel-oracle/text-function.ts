import { type CelFunc, type CelList, CelScalar, celFunc, celList, celMethod, listType } from "@bufbuild/cel";
import { compileGlob } from "../../../core/action/glob.ts";
import type { Meter } from "../../../core/policy/cel/meter.ts";
import { chargeRepetition } from "../../../core/policy/cel/text-function.ts";
import type { OraclePatterns } from "./pattern.ts";

const { BOOL, DYN, INT, STRING } = CelScalar;
const list = listType(DYN);

/** The longest text that an expression may create. */
const maxText = 1_048_576;
const maxNeedle = 1_024;
/** The price of compiling a pattern; charged for cached ones too, so that a verdict does not depend on earlier actions. */
const patternUnits = 2_000;
/** The price of using a pattern that is written in a rule and was compiled with it. */
const literalUnits = 10;
/** Layers of escapes that `unescaped` removes: `%252e` hides `%2e` hides `.`. */
const escapeLayers = 3;

/** The functions over texts. Offsets are UTF-16 code units, as in the envelope's bounds; `size` counts code points. */
export function textFunctions(meter: Meter, patterns: OraclePatterns): CelFunc[] {
  return [
    ...searchFunctions(meter),
    ...orderFunctions(meter),
    ...changingFunctions(meter),
    ...buildingFunctions(meter),
    ...partFunctions(meter),
    ...matchingFunctions(meter, patterns),
  ];
}

type Search = "includes" | "startsWith" | "endsWith" | "indexOf" | "lastIndexOf";

function searchFunctions(meter: Meter): CelFunc[] {
  const search = <Found extends boolean | bigint>(find: Search) =>
    function (this: string, needle: string): Found {
      if (needle.length > maxNeedle && needle.length <= this.length) {
        throw new RangeError(`expected to search for at most ${maxNeedle} characters, got ${needle.length}`);
      }
      meter.charge(1, this.length);
      if (!find.endsWith("With")) chargeRepetition(meter, this, needle);
      const found = this[find](needle);
      return (typeof found === "number" ? BigInt(found) : found) as Found;
    };
  return [
    celMethod("contains", STRING, [STRING], BOOL, search<boolean>("includes")),
    celMethod("startsWith", STRING, [STRING], BOOL, search<boolean>("startsWith")),
    celMethod("endsWith", STRING, [STRING], BOOL, search<boolean>("endsWith")),
    celMethod("indexOf", STRING, [STRING], INT, search<bigint>("indexOf")),
    celMethod("lastIndexOf", STRING, [STRING], INT, search<bigint>("lastIndexOf")),
  ];
}

const orders: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  "_<_": (a, b) => a < b,
  "_<=_": (a, b) => a <= b,
  "_>_": (a, b) => a > b,
  "_>=_": (a, b) => a >= b,
};

function orderFunctions(meter: Meter): CelFunc[] {
  return Object.entries(orders).map(([name, test]) =>
    celFunc(name, [STRING, STRING], BOOL, (a, b) => {
      meter.charge(1, Math.min(a.length, b.length));
      return test(a, b);
    }),
  );
}

/** Changing a text character by character costs about 8 times as much as reading it. */
function changingFunctions(meter: Meter): CelFunc[] {
  return [
    celMethod("lowerAscii", STRING, [], STRING, function () {
      meter.charge(1 + (this.length >>> 3));
      return this.replace(/[A-Z]+/g, (run) => run.toLowerCase());
    }),
    celMethod("upperAscii", STRING, [], STRING, function () {
      meter.charge(1 + (this.length >>> 3));
      return this.replace(/[a-z]+/g, (run) => run.toUpperCase());
    }),
    celMethod("trim", STRING, [], STRING, function () {
      meter.charge(1 + (this.length >>> 3));
      return this.trim();
    }),
    // Percent-escapes are decoded layer by layer, so that they hide nothing from a rule.
    celMethod("unescaped", STRING, [], STRING, function () {
      meter.charge(1 + (this.length >>> 3));
      let plain: string = this;
      for (let layer = 0; layer < escapeLayers && plain.includes("%"); layer++) {
        plain = plain.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
      }
      return plain;
    }),
    celMethod("split", STRING, [STRING], list, function (separator) {
      meter.charge(1 + (this.length >>> 1));
      chargeRepetition(meter, this, separator);
      return celList(this.split(separator));
    }),
  ];
}

function buildingFunctions(meter: Meter): CelFunc[] {
  const chargeNew = (length: number): void => {
    if (length > maxText) throw new RangeError(`expected to make at most ${maxText} characters, got ${length}`);
    meter.charge(1, length);
  };
  function join(this: CelList, separator = ""): string {
    meter.charge(this.size);
    const texts: string[] = [];
    let length = 0;
    for (const item of this) {
      if (typeof item !== "string") throw new TypeError("expected to join texts, got another value");
      length += item.length + separator.length;
      texts.push(item);
    }
    chargeNew(length);
    return texts.join(separator);
  }
  return [
    celFunc("_+_", [STRING, STRING], STRING, (a, b) => {
      chargeNew(a.length + b.length);
      return a + b;
    }),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (from, to) {
      meter.charge(1 + (this.length >>> 3));
      chargeRepetition(meter, this, from);
      const pieces = this.split(from);
      chargeNew(this.length + (pieces.length - 1) * (to.length - from.length));
      return pieces.join(to);
    }),
    celMethod("join", list, [], STRING, join),
    celMethod("join", list, [STRING], STRING, join),
  ];
}

function partFunctions(meter: Meter): CelFunc[] {
  function substring(this: string, begin: bigint, end = BigInt(this.length)): string {
    const bounds = `expected offsets in order from 0 to ${this.length}, got ${begin} and ${end}`;
    if (begin < 0n || begin > end || end > BigInt(this.length)) throw new RangeError(bounds);
    meter.charge(1, Number(end - begin));
    return this.slice(Number(begin), Number(end));
  }
  const codePoints = (text: string): bigint => {
    meter.charge(1 + (text.length >>> 4));
    // Quick for texts of one-byte characters, which have no surrogates.
    return surrogatePair.test(text) ? countCodePoints(text) : BigInt(text.length);
  };
  return [
    celMethod("substring", STRING, [INT], STRING, substring),
    celMethod("substring", STRING, [INT, INT], STRING, substring),
    celMethod("charAt", STRING, [INT], STRING, function (at) {
      return substring.call(this, at, at < BigInt(this.length) ? at + 1n : at);
    }),
    celFunc("size", [STRING], INT, codePoints),
    celMethod("size", STRING, [], INT, function () {
      return codePoints(this);
    }),
  ];
}

const surrogatePair = /[\ud800-\udbff][\udc00-\udfff]/;

function countCodePoints(text: string): bigint {
  let pairs = 0;
  for (let at = 1; at < text.length; at++) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
    if (isPair) pairs++;
  }
  return BigInt(text.length - pairs);
}

function matchingFunctions(meter: Meter, patterns: OraclePatterns): CelFunc[] {
  return [
    celMethod("matches", STRING, [STRING], BOOL, function (source) {
      const literal = patterns.literals.get(source);
      meter.charge(literal === undefined ? patternUnits : literalUnits);
      return (literal ?? patterns.get(source)).test(this, meter);
    }),
    celMethod("glob", STRING, [STRING], BOOL, function (pattern) {
      if (pattern.length > maxNeedle) {
        throw new RangeError(`expected a glob of at most ${maxNeedle} characters, got ${pattern.length}`);
      }
      meter.charge(literalUnits + (pattern.length >>> 1) + 1, this.length);
      for (const part of pattern.split("*")) chargeRepetition(meter, this, part);
      return compileGlob(pattern).test(this);
    }),
  ];
}
