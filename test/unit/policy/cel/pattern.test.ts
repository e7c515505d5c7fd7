import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { RE2JS } from "@bufbuild/re2";
import { expect } from "chai";
import { buildAutomaton } from "../../../../core/policy/cel/automaton.ts";
import { evaluationUnits, Meter } from "../../../../core/policy/cel/meter.ts";
import { compilePattern, PatternCache } from "../../../../core/policy/cel/pattern.ts";
import { SeededRandom } from "../../../support/detection/random.ts";
import { growthOf, maxGrowth } from "../../../support/duration.ts";
import { evaluate } from "../../../support/expression.ts";

const long = 65_536;

/** The work units that matching a text costs. */
function priceOf(pattern: ReturnType<typeof compilePattern>, text: string): number {
  const meter = new Meter();
  meter.left = evaluationUnits;
  pattern.test(text, meter);
  return evaluationUnits - meter.left;
}

describe("compilePattern(source, analyse)", () => {
  const refused: readonly [source: string, message: string][] = [
    ["(?<=a)b", "error parsing regexp: invalid named capture: `(?<=a)b`"],
    ["(?<!a)b", "error parsing regexp: invalid named capture: `(?<!a)b`"],
    ["(?=a)b", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"],
    ["(a)\\1", "error parsing regexp: invalid escape sequence: `\\1`"],
    ["((a{100}){100}){100}", "error parsing regexp: invalid repeat count: `{100}`"],
    ["(", "error parsing regexp: missing closing ): `(`"],
    ["a".repeat(1_025), "expected a pattern of at most 1024 characters, got 1025"],
    ["[ab]{900}[cd]{900}[ef]{900}", "expected a pattern of at most 2000 instructions, got 2702"],
  ];
  for (const [source, message] of refused) {
    it(`refuses ${source.slice(0, 30)} [S27]`, () => {
      expect(() => compilePattern(source, true)).to.throw(Error, message);
    });
  }

  it("knows a small automaton, and asks little for each character", () => {
    expect(priceOf(compilePattern("(select|insert) .*from", true), "a".repeat(1_000))).to.equal(1_000);
    expect(priceOf(compilePattern("(?i)[/](ssk|env)[/]", true), "é".repeat(1_000))).to.equal(4_000);
  });

  it("asks the worst where it does not know, and refuses what would cost more than a match may", () => {
    const large = compilePattern("[ab]*a[ab]{30}[yz]", true);
    expect(priceOf(large, "a".repeat(1_000))).to.be.above(30_000);
    expect(() => priceOf(large, "a".repeat(long))).to.throw(
      RangeError,
      /^expected a text of at most \d+ characters for this pattern, got 65536$/,
    );
    expect(priceOf(compilePattern("^a", true), "a".repeat(1_000))).to.equal(4_000);
    expect(priceOf(compilePattern("(select|insert)", false), "a".repeat(10))).to.be.above(10);
  });

  const hostile: readonly [source: string, text: string][] = [
    ["(a+)+$", `${"a".repeat(long - 1)}!`],
    ["(a|a)*b", "a".repeat(long)],
    ["(x+x+)+y", "x".repeat(long)],
    ["([a-z]+)*[0-9]", "a".repeat(long)],
    ["(.*)*[yz]", "a".repeat(long)],
    ["(a|b)*a(a|b){14}[yz]", "ab".repeat(long / 2)],
    ["(?i)(\\pL+\\pN*)*[!?]", "aé".repeat(long / 2)],
    ["\\b(.?){0,300}\\b[yz]", "ab ".repeat(long / 3)],
    ["(^|/)a[ab/]{200}($|[yz])", "ab/".repeat(long / 3)],
    ["[\\s\\S]+[yz]", Array.from({ length: 16_000 }, (_, index) => String.fromCharCode(0x4e00 + index)).join("")],
  ];
  for (const [source, text] of hostile) {
    it(`answers or refuses ${source} over ${text.length} characters in linear time [S27]`, async () => {
      const pattern = compilePattern(source, true);
      const judge = (read: string): void => {
        try {
          const meter = new Meter();
          meter.left = evaluationUnits;
          expect(pattern.test(read, meter)).to.equal(false);
        } catch (error) {
          expect(error).to.be.instanceOf(RangeError);
        }
      };
      judge(text);
      expect(await growthOf((length) => text.slice(-length), judge, text.length / 4)).to.be.below(maxGrowth);
    });
  }
});

describe("Pattern.test(text)", () => {
  it("does not keep every character it ever met", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    // Computed, so the engine matches it.
    const pattern = compilePattern("[a-z]+[0-9]", false);
    const plane = (first: number): string =>
      String.fromCodePoint(...Array.from({ length: 8_192 }, (_, n) => first + n));
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let first = 0x10000; first < 0x10ffff - 8_192; first += 8_192)
      expect(pattern.test(plane(first))).to.equal(false);
    collect();
    expect(process.memoryUsage().heapUsed - before).to.be.below(16_000_000);
  });
});

describe("an automaton", () => {
  const sources = [
    ...["", "a", "abc", "a|bc|d", "(?i)select .*from", "[^a-z]", ".", "(?s).b", "é|😀", "(?i)[ks]+x", "[\\pL]+[0-9]"],
    ...["(a|b)*a(a|b){3}[yz]", "[\\x00-\\x1f]", "\\.\\.[. ]*[/?#]", "(?i)k", "[\\x{1F600}-\\x{1F64F}]a", "a{2,5}b?"],
  ];
  const pieces = [
    "a",
    "b",
    "c",
    "K",
    "k",
    "\u212a",
    "ſ",
    "S",
    "é",
    "😀",
    "\ud83d",
    "\ude00",
    ".",
    "/",
    "\n",
    "\0",
    "1",
    "yz",
    " ",
  ];

  it("matches what the engine matches, whatever the text", () => {
    const random = new SeededRandom(16);
    let built = 0;
    for (const source of sources) {
      const automaton = buildAutomaton(RE2JS.compile(source).re2().prog);
      if (automaton === undefined) continue;
      built++;
      for (let round = 0; round < 400; round++) {
        const text = Array.from({ length: random.below(12) }, () => random.pick(pieces)).join("");
        expect(automaton.matches(text), `${source} in ${JSON.stringify(text)}`).to.equal(
          RE2JS.compile(source).test(text),
        );
      }
    }
    expect(built).to.equal(sources.length);
  });

  it("is built of what depends on no position, and is not too large", () => {
    for (const source of ["^a", "a$", "\\bx", "[ab]*a[ab]{30}[yz]", "(?i)é"]) {
      expect(buildAutomaton(RE2JS.compile(source).re2().prog), source).to.equal(undefined);
    }
  });

  it("is kept where the tables of the pack have room, at the same price", () => {
    const kept = compilePattern("(select|insert) .*from", true);
    const refused = compilePattern("(select|insert) .*from", true, kept.bytes - 1);
    expect(kept.bytes).to.be.within(1, 65_536);
    expect(refused.bytes).to.equal(0);
    expect(priceOf(refused, "a".repeat(1_000))).to.equal(priceOf(kept, "a".repeat(1_000)));
    expect(refused.test("insert x from")).to.equal(kept.test("insert x from"));
  });

  it("is made of no more than a megabyte of tables in one pack", () => {
    const cache = new PatternCache();
    for (let index = 0; index < 200; index++) cache.keep(`${index}(a|b)*a(a|b){8}[yz]`);
    const bytes = Array.from(cache.literals.values(), (pattern) => pattern.bytes);
    expect(bytes.filter((each) => each === 0).length).to.be.above(0);
    expect(bytes.reduce((sum, each) => sum + each, 0)).to.be.within(900_000, 1_048_576);
  });
});

describe("PatternCache", () => {
  it("gives what it kept, however many others came", () => {
    const cache = new PatternCache();
    cache.keep("kept");
    const kept = cache.get("kept");
    const first = cache.get("other-0");
    expect(cache.get("other-0")).to.equal(first);
    for (let index = 1; index <= 256; index++) cache.get(`other-${index}`);
    expect(cache.get("kept")).to.equal(kept);
    expect(cache.get("other-0")).not.to.equal(first);
  });
});

describe("text.matches(pattern)", () => {
  it("fails for a pattern out of the arguments that is none", () => {
    expect(evaluate("tool.matches(args.p)", { p: "(?<=a)b" })).to.contain("invalid named capture");
  });

  it("fails, never misses, where the text is too long to be searched", () => {
    expect(evaluate('args.t.matches("^a")', { t: `a${"b".repeat(200_000)}` })).to.equal(
      "expected a text of at most 65536 characters for this pattern, got 200001",
    );
  });
});
