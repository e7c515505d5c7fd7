import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { notePattern } from "../../core/evidence/tree/checkpoint.ts";
import { hostileTexts, hostileTextsFor, leastMilliseconds } from "../support/hostile-text.ts";
import { patternsIn } from "../support/regular-expression.ts";
import { readSourceTree } from "./source-tree.ts";

const maxMs = 50;
/** For all texts of one pattern: one that backtracks without end is not waited for. */
const givenUpMs = 2_000;

/** Whether a pattern is done with each of the texts in time; a text that takes long is read again. */
function isQuick(pattern: RegExp, texts: readonly string[]): boolean {
  const read = (text: string): unknown => {
    pattern.lastIndex = 0;
    return pattern.global ? text.replace(pattern, "") : pattern.test(text);
  };
  const readAll = (): boolean =>
    texts.every((text) => {
      const started = performance.now();
      read(text);
      return performance.now() - started < maxMs || leastMilliseconds(() => read(text)) < maxMs;
    });
  try {
    return runInNewContext("readAll()", { readAll }, { timeout: givenUpMs }) as boolean;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  }
}

describe("the regular expressions of the runtime", () => {
  const common = [...hostileTexts().values()];

  it("are each done with 64 kB of whatever they speak of within 50 ms [S27]", () => {
    const written = [...readSourceTree(["core", "sdk/src"], [".ts"])].flatMap(([path, source]) =>
      patternsIn(source).map(({ line, pattern }) => ({ place: `${path}:${line}`, pattern })),
    );
    const all = [...written, { place: "notePattern", pattern: notePattern }];
    const slow = all.filter(({ pattern }) => !isQuick(pattern, [...common, ...hostileTextsFor(pattern)]));
    expect(slow.map(({ place, pattern }) => `${place}: ${pattern}`)).to.deep.equal([]);
    expect(written).to.have.length.above(100);
  });

  it("would be told apart from ones that are not", () => {
    for (const pattern of [/[.\s]+$/, /^(a+)+$/, /^id: (?:\w+\s?)*$/]) {
      expect(isQuick(pattern, hostileTextsFor(pattern)), String(pattern)).to.equal(false);
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
