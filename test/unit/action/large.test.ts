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
});
