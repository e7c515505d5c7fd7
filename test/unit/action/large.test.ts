import { expect } from "chai";
import { isLarge, type Json } from "../../../core/action/json.ts";

describe("isLarge(value)", () => {
  const rows: readonly (readonly [string, Json, boolean])[] = [
    ["nothing", null, false],
    ["a number", 1e300, false],
    ["a page of text", "x".repeat(30_000), false],
    ["a book", "x".repeat(33_000), true],
    ["a text deep inside", { a: [{ b: ["x".repeat(33_000)] }] }, true],
    ["texts that are so long together", Array.from({ length: 40 }, () => "x".repeat(1_000)), true],
    ["a name", { ["x".repeat(33_000)]: 1 }, true],
    ["a thousand empty objects", Array.from({ length: 1_000 }, () => ({})), false],
    ["five thousand of them", Array.from({ length: 5_000 }, () => ({})), true],
  ];
  for (const [name, value, expected] of rows) {
    it(`is ${expected} for ${name}`, () => {
      expect(isLarge(value)).to.equal(expected);
    });
  }

  it("is the same when it is asked again, for another bound too", () => {
    const inner = { rows: Array.from({ length: 3_000 }, () => 1) };
    for (let time = 0; time < 2; time++) {
      expect(isLarge(inner, 100_000)).to.equal(false);
      expect(isLarge({ inner })).to.equal(true);
      expect(isLarge(inner)).to.equal(true);
      expect(isLarge(inner, 40_000)).to.equal(true);
    }
    const half = { rows: Array.from({ length: 1_200 }, () => 1) };
    expect(isLarge([half, half])).to.equal(true);
    expect(isLarge(half)).to.equal(false);
  });
});
