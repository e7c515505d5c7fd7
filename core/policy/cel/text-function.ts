import { type CelFunc, type CelList, CelScalar, celFunc, celList, celMethod, listType } from "@bufbuild/cel";
import { compileGlob } from "../../action/glob.ts";
import type { Meter } from "./meter.ts";
import type { PatternCache } from "./pattern.ts";

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
export function textFunctions(meter: Meter, patterns: PatternCache): CelFunc[] {
  return [
    ...searchFunctions(meter),
    ...orderFunctions(meter),
    ...buildingFunctions(meter),
    ...slicingFunctions(meter),
    ...matchingFunctions(meter, patterns),
  ];
}

function searchFunctions(meter: Meter): CelFunc[] {
  const pay = (text: string, needle: string): void => {
    if (needle.length > maxNeedle && needle.length <= text.length) {
      throw new RangeError(`expected to search for at most ${maxNeedle} characters, got ${needle.length}`);
    }
    meter.chargeText(text.length);
  };
  const search = <T>(find: (text: string, needle: string) => T) =>
    function (this: string, needle: string): T {
      pay(this, needle);
      return find(this, needle);
    };
  return [
    celMethod(
      "contains",
      STRING,
      [STRING],
      BOOL,
      search((text, needle) => text.includes(needle)),
    ),
    celMethod(
      "startsWith",
      STRING,
      [STRING],
      BOOL,
      search((text, needle) => text.startsWith(needle)),
    ),
    celMethod(
      "endsWith",
      STRING,
      [STRING],
      BOOL,
      search((text, needle) => text.endsWith(needle)),
    ),
    celMethod(
      "indexOf",
      STRING,
      [STRING],
      INT,
      search((text, needle) => BigInt(text.indexOf(needle))),
    ),
    celMethod(
      "lastIndexOf",
      STRING,
      [STRING],
      INT,
      search((text, needle) => BigInt(text.lastIndexOf(needle))),
    ),
  ];
}

function orderFunctions(meter: Meter): CelFunc[] {
  const compare = (test: (a: string, b: string) => boolean) => (a: string, b: string) => {
    meter.chargeText(Math.min(a.length, b.length));
    return test(a, b);
  };
  return [
    celFunc(
      "_<_",
      [STRING, STRING],
      BOOL,
      compare((a, b) => a < b),
    ),
    celFunc(
      "_<=_",
      [STRING, STRING],
      BOOL,
      compare((a, b) => a <= b),
    ),
    celFunc(
      "_>_",
      [STRING, STRING],
      BOOL,
      compare((a, b) => a > b),
    ),
    celFunc(
      "_>=_",
      [STRING, STRING],
      BOOL,
      compare((a, b) => a >= b),
    ),
  ];
}

function buildingFunctions(meter: Meter): CelFunc[] {
  const chargeNew = (length: number): void => {
    if (length > maxText) throw new RangeError(`expected to make at most ${maxText} characters, got ${length}`);
    meter.chargeText(length);
  };
  const whole = (change: (text: string) => string) =>
    function (this: string): string {
      // Changing a text character by character costs about 8 times as much as reading it.
      meter.charge(1 + (this.length >>> 3));
      return change(this);
    };
  const concat = (a: string, b: string): string => {
    chargeNew(a.length + b.length);
    return a + b;
  };
  const codePoints = (text: string): bigint => {
    meter.charge(1 + (text.length >>> 4));
    // Quick for texts of one-byte characters, which have no surrogates.
    return surrogatePair.test(text) ? countCodePoints(text) : BigInt(text.length);
  };
  return [
    celFunc("_+_", [STRING, STRING], STRING, concat),
    celFunc("size", [STRING], INT, codePoints),
    celMethod("size", STRING, [], INT, function () {
      return codePoints(this);
    }),
    celMethod(
      "lowerAscii",
      STRING,
      [],
      STRING,
      whole((text) => text.replace(/[A-Z]+/g, (run) => run.toLowerCase())),
    ),
    celMethod(
      "upperAscii",
      STRING,
      [],
      STRING,
      whole((text) => text.replace(/[a-z]+/g, (run) => run.toUpperCase())),
    ),
    celMethod(
      "trim",
      STRING,
      [],
      STRING,
      whole((text) => text.trim()),
    ),
    celMethod("unescaped", STRING, [], STRING, whole(decodeEscapes)),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (from: string, to: string) {
      meter.charge(1 + (this.length >>> 3));
      const pieces = this.split(from);
      chargeNew(this.length + (pieces.length - 1) * (to.length - from.length));
      return pieces.join(to);
    }),
    celMethod("split", STRING, [STRING], list, function (separator: string) {
      meter.charge(1 + (this.length >>> 1));
      return celList(this.split(separator));
    }),
    celMethod("join", list, [], STRING, function () {
      meter.charge(this.size);
      return join(this, "", chargeNew);
    }),
    celMethod("join", list, [STRING], STRING, function (separator: string) {
      meter.charge(this.size);
      return join(this, separator, chargeNew);
    }),
  ];
}

function slicingFunctions(meter: Meter): CelFunc[] {
  const cut = (text: string, begin: bigint, end: bigint): string => {
    const bounds = `expected offsets in order from 0 to ${text.length}, got ${begin} and ${end}`;
    if (begin < 0n || begin > end || end > BigInt(text.length)) throw new RangeError(bounds);
    meter.chargeText(Number(end - begin));
    return text.slice(Number(begin), Number(end));
  };
  return [
    celMethod("substring", STRING, [INT], STRING, function (begin: bigint) {
      return cut(this, begin, BigInt(this.length));
    }),
    celMethod("substring", STRING, [INT, INT], STRING, function (begin: bigint, end: bigint) {
      return cut(this, begin, end);
    }),
    celMethod("charAt", STRING, [INT], STRING, function (at: bigint) {
      const end = at < BigInt(this.length) ? at + 1n : at;
      return cut(this, at, end);
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

/** Decodes percent-escapes layer by layer, so that they hide nothing from a rule. */
function decodeEscapes(text: string): string {
  let plain = text;
  for (let layer = 0; layer < escapeLayers && plain.includes("%"); layer++) {
    plain = plain.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return plain;
}

function join(items: CelList, separator: string, chargeNew: (length: number) => void): string {
  const texts: string[] = [];
  let length = 0;
  for (const item of items) {
    if (typeof item !== "string") throw new TypeError("expected to join texts, got another value");
    length += item.length + separator.length;
    texts.push(item);
  }
  chargeNew(length);
  return texts.join(separator);
}

function matchingFunctions(meter: Meter, patterns: PatternCache): CelFunc[] {
  return [
    celMethod("matches", STRING, [STRING], BOOL, function (source: string) {
      const literal = patterns.literals.get(source);
      meter.charge(literal === undefined ? patternUnits : literalUnits);
      const pattern = literal ?? patterns.get(source);
      meter.charge(pattern.price(this));
      return pattern.test(this);
    }),
    celMethod("glob", STRING, [STRING], BOOL, function (pattern: string) {
      if (pattern.length > maxNeedle) {
        throw new RangeError(`expected a glob of at most ${maxNeedle} characters, got ${pattern.length}`);
      }
      meter.charge(literalUnits + (pattern.length >>> 1));
      meter.chargeText(this.length);
      return compileGlob(pattern).test(this);
    }),
  ];
}
