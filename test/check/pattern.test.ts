import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { notePattern } from "../../core/evidence/tree/checkpoint.ts";
import { cpuMs, maxGrowth } from "../support/duration.ts";
import { hostileTexts, hostileTextsFor } from "../support/hostile-text.ts";
import { patternsIn } from "../support/regular-expression.ts";
import { readSourceTree } from "./source-tree.ts";

/** Time for 64 kB that gives reason to measure growth, in milliseconds. */
const suspiciousMs = 5;
/** How often growth is measured before it counts. */
const measurements = 5;

/** Returns whether a pattern reads each of the texts in linear time. One that backtracks without end is given up. */
function isLinear(pattern: RegExp, texts: readonly string[], givenUpMs: number): boolean {
  const costOf = (text: string, now: () => number): number => {
    const before = now();
    pattern.lastIndex = 0;
    pattern.global ? text.replace(pattern, "") : pattern.test(text);
    return now() - before;
  };
  const leastOf = (text: string): number => Math.min(costOf(text, cpuMs), costOf(text, cpuMs), costOf(text, cpuMs));
  /** From 1 kB to 64 kB, so that quadratic patterns are found before they take long. */
  const isLinearOn = (text: string): boolean => {
    for (const size of [1_024, 4_096, 16_384]) {
      // By the clock, which is read in no time and never shows less than the processor's.
      if (costOf(text.slice(-4 * size), () => performance.now()) < suspiciousMs) continue;
      const growth = (): number => leastOf(text.slice(-4 * size)) / Math.max(leastOf(text.slice(-size)), 1);
      // Again and again: a collection of garbage may fall into all of the first three.
      if (Array.from({ length: measurements }).every(() => growth() > maxGrowth)) return false;
    }
    return true;
  };
  const readAll = (): boolean => texts.every(isLinearOn);
  try {
    return runInNewContext("readAll()", { readAll }, { timeout: givenUpMs }) as boolean;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  }
}

describe("the regular expressions of the runtime", () => {
  const common = [...hostileTexts().values()];

  it("each read 64 kB of whatever they speak of in linear time [S27]", () => {
    const written = [...readSourceTree(["core", "sdk/src"], [".ts"])].flatMap(([path, source]) =>
      patternsIn(source).map(({ line, pattern }) => ({ place: `${path}:${line}`, pattern })),
    );
    const all = [...written, { place: "notePattern", pattern: notePattern }];
    const slow = all.filter(({ pattern }) => !isLinear(pattern, [...common, ...hostileTextsFor(pattern)], 60_000));
    expect(slow.map(({ place, pattern }) => `${place}: ${pattern}`)).to.deep.equal([]);
    expect(written).to.have.length.above(100);
  });

  it("would be told apart from ones that are not", () => {
    for (const pattern of [/[.\s]+$/, /^(a+)+$/, /^id: (?:\w+\s?)*$/]) {
      expect(isLinear(pattern, hostileTextsFor(pattern), 1_000), String(pattern)).to.equal(false);
    }
  });
});

describe("patternsIn(source)", () => {
  const found = (source: string): readonly string[] => patternsIn(source).map(({ pattern }) => String(pattern));

  it("finds them where a value may stand, and takes no division for one", () => {
    expect(found("const a = /x[/]y/g;\nreturn /z\\/w/.test(b) ? c / d / e : f(/v/u);")).to.deep.equal([
      "/x[/]y/g",
      "/z\\/w/",
      "/v/u",
    ]);
    expect(found("const half = (a + b) / 2 / c[0] / 3;")).to.deep.equal([]);
  });

  it("finds them within templates, and none in texts and comments", () => {
    expect(found("const a = `/no/ $" + "{b.replace(/yes/, `$" + "{/deep/.test(c) ? {} : 1}`)} /no/`;")).to.deep.equal([
      "/yes/",
      "/deep/",
    ]);
    expect(found("// = /no/\n/* = /no/ */ const a = '= /no/' + \"= /no/\";")).to.deep.equal([]);
  });

  it("says on which line each stands", () => {
    expect(patternsIn("\n\nconst a = /x/;").map(({ line }) => line)).to.deep.equal([3]);
  });
});
