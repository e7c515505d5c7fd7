import { compileGlob } from "../../action/glob.ts";
import type { CelFunction } from "./evaluator.ts";
import type { Meter } from "./meter.ts";
import type { Pattern, PatternCache } from "./pattern.ts";
import { CelFailure, type CelResult, type CelValue, isList } from "./value.ts";

/** The longest text that an expression may create. */
const maxText = 1_048_576;
const maxNeedle = 1_024;
/** The price of compiling a pattern; charged for cached ones too, so that a verdict does not depend on earlier actions. */
const patternUnits = 2_000;
/** The price of using a pattern that is written in a rule and was compiled with it. */
const literalUnits = 10;
/** Layers of escapes that `unescaped` removes: `%252e` hides `%2e` hides `.`. */
const escapeLayers = 3;

type TextTable = Readonly<Record<string, CelFunction>>;

/** Counts the code points of a text, charged for. */
export function sizeOfText(text: string, meter: Meter): number {
  meter.charge(1 + (text.length >>> 4));
  // Quick for texts of one-byte characters, which have no surrogates.
  return surrogatePair.test(text) ? countCodePoints(text) : text.length;
}

/** The methods of texts. Offsets are UTF-16 code units, as in the envelope's bounds; `size` counts code points. */
export function textMethods(meter: Meter, patterns: PatternCache): TextTable {
  return {
    ...searchMethods(meter),
    ...changingMethods(meter),
    ...buildingMethods(meter),
    ...partMethods(meter),
    ...matchingMethods(meter, patterns),
  };
}

function ofTexts(run: (text: string, other: string) => CelResult): CelFunction {
  return (text, other) => (typeof text === "string" && typeof other === "string" ? run(text, other) : undefined);
}

function searchMethods(meter: Meter): TextTable {
  const find = (compare: (text: string, needle: string) => CelResult, isAnywhere: boolean): CelFunction => {
    return (text, needle) => {
      if (typeof text !== "string" || typeof needle !== "string") return undefined;
      if (needle.length > maxNeedle && needle.length <= text.length) {
        return new CelFailure(`expected to search for at most ${maxNeedle} characters, got ${needle.length}`);
      }
      meter.charge(1, text.length);
      if (isAnywhere) chargeRepetition(meter, text, needle);
      return compare(text, needle);
    };
  };
  return {
    contains: find((text, needle) => text.includes(needle), true),
    startsWith: find((text, needle) => text.startsWith(needle), false),
    endsWith: find((text, needle) => text.endsWith(needle), false),
    indexOf: find((text, needle) => BigInt(text.indexOf(needle)), true),
    lastIndexOf: find((text, needle) => BigInt(text.lastIndexOf(needle)), true),
  };
}

/** Comparisons of characters that cost less than to find out whether there will be as many. */
const freeComparisons = 1_024;

/**
 * Charges for what a search for `needle` reads again: the engine's search takes the product of both lengths where the needle
 * repeats itself at its begin or end, as `aaa…b…aaa` does, and one pass where it does not.
 */
export function chargeRepetition(meter: Meter, text: string, needle: string): void {
  if (needle.length > text.length || needle.length * text.length <= freeComparisons) return;
  meter.charge(needle.length >>> 2);
  const forward = repetitionOf(needle.length, (at) => needle.charCodeAt(at));
  const backward = repetitionOf(needle.length, (at) => needle.charCodeAt(needle.length - 1 - at));
  meter.charge(Math.ceil((text.length / 64) * (Math.max(forward, backward) - 1)));
}

/** Returns how often the beginning of a text repeats itself at most: 1 for `abc`, 4 for `ababababc`. */
function repetitionOf(length: number, at: (index: number) => number): number {
  // The longest border of each beginning, as Knuth, Morris and Pratt find it; a border makes a period.
  const borders = new Int32Array(length + 1);
  let most = 1;
  for (let end = 1, border = 0; end < length; end++) {
    while (border > 0 && at(border) !== at(end)) border = borders[border] as number;
    if (at(border) === at(end)) border++;
    borders[end + 1] = border;
    most = Math.max(most, (end + 1) / (end + 1 - border));
  }
  return most;
}

/** Changing a text character by character costs about 8 times as much as reading it. */
function changingMethods(meter: Meter): TextTable {
  const change = (make: (text: string) => string): CelFunction => {
    return (text) => {
      if (typeof text !== "string") return undefined;
      meter.charge(1 + (text.length >>> 3));
      return make(text);
    };
  };
  return {
    lowerAscii: change((text) => text.replace(/[A-Z]+/g, (run) => run.toLowerCase())),
    upperAscii: change((text) => text.replace(/[a-z]+/g, (run) => run.toUpperCase())),
    trim: change((text) => text.trim()),
    unescaped: change(decodeEscapes),
    split: ofTexts((text, separator) => {
      meter.charge(1 + (text.length >>> 1));
      chargeRepetition(meter, text, separator);
      return text.split(separator);
    }),
  };
}

/** Decodes percent-escapes layer by layer, so that they hide nothing from a rule. */
function decodeEscapes(text: string): string {
  let plain = text;
  for (let layer = 0; layer < escapeLayers && plain.includes("%"); layer++) {
    plain = plain.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return plain;
}

/** Charges for making a text of this length, or fails where it is longer than a text may be. */
export function chargeNew(meter: Meter, length: number): CelFailure | undefined {
  if (length > maxText) return new CelFailure(`expected to make at most ${maxText} characters, got ${length}`);
  meter.charge(1, length);
  return undefined;
}

function buildingMethods(meter: Meter): TextTable {
  return {
    replace: (text, from, to) => {
      if (typeof text !== "string" || typeof from !== "string" || typeof to !== "string") return undefined;
      meter.charge(1 + (text.length >>> 3));
      chargeRepetition(meter, text, from);
      const pieces = text.split(from);
      const length = text.length + (pieces.length - 1) * (to.length - from.length);
      return chargeNew(meter, length) ?? pieces.join(to);
    },
    join: (items, separator = "") =>
      isList(items) && typeof separator === "string" ? join(items, separator, meter) : undefined,
  };
}

function join(items: readonly CelValue[], separator: string, meter: Meter): CelResult {
  meter.charge(items.length);
  let length = 0;
  for (const item of items) {
    if (typeof item !== "string") return new CelFailure("expected to join texts, got another value");
    length += item.length + separator.length;
  }
  return chargeNew(meter, length) ?? items.join(separator);
}

function partMethods(meter: Meter): TextTable {
  const substring = (text: string, begin: bigint, end: bigint): CelResult => {
    if (begin < 0n || begin > end || end > BigInt(text.length)) {
      return new CelFailure(`expected offsets in order from 0 to ${text.length}, got ${begin} and ${end}`);
    }
    meter.charge(1, Number(end - begin));
    return text.slice(Number(begin), Number(end));
  };
  return {
    substring: (text, begin, end) => {
      if (typeof text !== "string" || typeof begin !== "bigint") return undefined;
      if (end === undefined) return substring(text, begin, BigInt(text.length));
      return typeof end === "bigint" ? substring(text, begin, end) : undefined;
    },
    charAt: (text, at) => {
      if (typeof text !== "string" || typeof at !== "bigint") return undefined;
      return substring(text, at, at < BigInt(text.length) ? at + 1n : at);
    },
  };
}

const surrogatePair = /[\ud800-\udbff][\udc00-\udfff]/;

function countCodePoints(text: string): number {
  let pairs = 0;
  for (let at = 1; at < text.length; at++) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
    if (isPair) pairs++;
  }
  return text.length - pairs;
}

function matchingMethods(meter: Meter, patterns: PatternCache): TextTable {
  return {
    matches: ofTexts((text, source) => {
      const literal = patterns.literals.get(source);
      if (literal !== undefined) return matchLiteral(literal, text, meter);
      meter.charge(patternUnits);
      try {
        return patterns.get(source).test(text, meter);
      } catch (error) {
        return patternFailure(error, meter);
      }
    }),
    glob: ofTexts((text, pattern) => {
      if (pattern.length > maxNeedle) {
        return new CelFailure(`expected a glob of at most ${maxNeedle} characters, got ${pattern.length}`);
      }
      meter.charge(literalUnits + (pattern.length >>> 1) + 1, text.length);
      for (const part of pattern.split("*")) chargeRepetition(meter, text, part);
      return compileGlob(pattern).test(text);
    }),
  };
}

/** Matches a pattern that is written in a rule. */
export function matchLiteral(pattern: Pattern, text: string, meter: Meter): CelResult {
  meter.charge(literalUnits);
  try {
    return pattern.test(text, meter);
  } catch (error) {
    return patternFailure(error, meter);
  }
}

/** Returns what a pattern threw as a failure. Throws it again where the budget is spent. */
function patternFailure(error: unknown, meter: Meter): CelFailure {
  if (meter.left < 0) throw error;
  return new CelFailure(error instanceof Error ? error.message : String(error));
}
