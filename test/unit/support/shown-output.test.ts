import { expect } from "chai";
import { isAsShown } from "../../support/shown-output.ts";

describe("isAsShown(shown, actual)", () => {
  const table: [string, string, string, boolean][] = [
    ["the same text", "a\nb", "a\nb\n", true],
    ["another text", "a\nb", "a\nc\n", false],
    ["a line too many", "a", "a\nb\n", false],
    ["a line too few", "a\nb", "a\n", false],
    ["nothing where nothing is shown", "", "", true],
    ["something where nothing is shown", "", "a\n", false],
    ["an ellipsis within a line", "id …, done", "id 42, done\n", true],
    ["an ellipsis that would span lines", "id …, done", "id 4\n2, done\n", false],
    ["an ellipsis for several lines", "a\n…\nd", "a\nb\nc\nd\n", true],
    ["an ellipsis for no line", "a\n…\nd", "a\nd\n", true],
    ["signs that patterns know", "a.b (c) [d] $1|", "a.b (c) [d] $1|\n", true],
    ["a dot that stands for itself", "a.b", "axb\n", false],
  ];
  for (const [what, shown, actual, expected] of table) {
    it(`${expected ? "takes" : "refuses"} ${what}`, () => {
      expect(isAsShown(shown, actual)).to.equal(expected);
    });
  }
});
