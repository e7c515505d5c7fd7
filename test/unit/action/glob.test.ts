import { expect } from "chai";
import fc from "fast-check";
import { compileGlob, GlobTable } from "../../../core/action/glob.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

describe("compileGlob(pattern)", () => {
  const rows: readonly [pattern: string, text: string, matches: boolean][] = [
    ["read_file", "read_file", true],
    ["read_file", "Read_file", false],
    ["read_file", "read_file ", false],
    ["*", "", true],
    ["*", "anything/at all", true],
    ["read_*", "read_", true],
    ["read_*", "read_file", true],
    ["read_*", "pread_file", false],
    ["*_file", "read_file", true],
    ["*_file", "read_files", false],
    ["a*a", "a", false],
    ["a*a", "aa", true],
    ["*b*", "abc", true],
    ["a*b*c", "a-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["a*bc*c", "abc", false],
    ["a**c", "abc", true],
    ["a.c", "abc", false],
    ["caf\u00e9", "cafe\u0301", false],
    ["tool", "t\u043eol", false],
  ];
  for (const [pattern, text, matches] of rows) {
    it(`${matches ? "matches" : "does not match"} ${JSON.stringify(text)} with ${JSON.stringify(pattern)}`, () => {
      expect(compileGlob(pattern).test(text)).to.equal(matches);
    });
  }

  it("agrees with an anchored regular expression on every small text", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
    const texts = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 10 });
    fc.assert(
      fc.property(letters, texts, (pattern, text) => {
        expect(compileGlob(pattern).test(text)).to.equal(new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(text));
      }),
    );
  });

  it("takes linear time where backtracking would not end", async () => {
    const pattern = `${"a*".repeat(100)}b`;
    expect(compileGlob(pattern).test("a".repeat(65_536))).to.equal(false);
    const glob = compileGlob(pattern);
    expect(
      await growthOf(
        (length) => "a".repeat(length),
        (text) => glob.test(text),
        65_536,
      ),
    ).to.be.below(maxGrowth);
  });
});

describe("GlobTable", () => {
  it("finds a name before its globs, and the longest glob first", () => {
    const table = new GlobTable({ "*": 1, "read_*": 2, "read_file*": 3, read_me: 4 });
    expect(["read_me", "read_files", "read_it", "write"].map((name) => table.get(name))).to.deep.equal([4, 3, 2, 1]);
    expect(new GlobTable({ "a*": 1 }).get("b")).to.equal(undefined);
    expect(new GlobTable({}).get("constructor")).to.equal(undefined);
  });
});
