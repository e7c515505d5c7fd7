import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../core/action/json.ts";
import { jsonPieces, sharedJson, textPieces } from "../../../core/action/json-pieces.ts";
import { roundsOf } from "../../support/rounds.ts";

const repeated = fc.tuple(fc.string({ unit: "binary", minLength: 1 }), fc.nat(70_000)).map(([text, times]) => {
  return text.repeat(Math.ceil(times / text.length));
});
const json = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    repeated,
    fc.constantFrom(null, true, 0, -1.5, "", "__proto__"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.string(), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

describe("jsonPieces(value)", () => {
  it("yields what JSON.stringify returns, in pieces that stay short", () => {
    const check = (value: Json): void => {
      const pieces = [...jsonPieces(value)];
      expect(pieces.join("")).to.equal(JSON.stringify(value));
      expect(Math.max(...pieces.map(({ length }) => length))).to.be.lessThan(500_000);
    };
    fc.assert(fc.property(json, check), { numRuns: roundsOf(200, 5_000) });
  });

  it("stays short where many short values make a long text", () => {
    const items = Array.from({ length: 1_000 }, (_, at) => ({ at, text: "x".repeat(1_000) }));
    for (const value of [items, { a: { ...items }, b: [[items]] }, [{ a: 1 }, items, { b: items.slice(0, 60) }]]) {
      const pieces = [...jsonPieces(value as Json)];
      expect(pieces.join("")).to.equal(JSON.stringify(value));
      expect(Math.max(...pieces.map(({ length }) => length))).to.be.within(60_000, 70_000);
    }
  });

  it("has no more than 2,048 members in a piece where each is written by itself [S76]", () => {
    const items = Array.from({ length: 45_000 }, () => ({}));
    for (const value of [items, Object.fromEntries(items.map((_, at) => [`m${at}`, 1]))]) {
      const pieces = [...jsonPieces(value as Json)];
      expect(pieces.join("")).to.equal(JSON.stringify(value));
      expect(Math.max(...pieces.map((piece) => piece.split(",").length))).to.be.at.most(2_049);
      // They are measured before, as many at a time.
      expect(pieces.findIndex((piece) => piece !== "")).to.be.above(45_000 / 2_048);
    }
  });

  it("leaves out members that are undefined, and makes no copy of a long string", () => {
    const text = "x".repeat(1_000_000);
    const value = { a: undefined, b: [text], c: undefined } as unknown as Json;
    const pieces = [...jsonPieces(value)];
    expect(pieces.join("")).to.equal(JSON.stringify(value));
    expect(Math.max(...pieces.map(({ length }) => length))).to.equal(65_536);
  });
});

describe("sharedJson(value)", () => {
  it("has the UTF-8 bytes of JSON.stringify, in memory that threads share", () => {
    for (const value of [{ a: "é\ud83d\ude00".repeat(50_000), b: "\ud83d" }, [], "short"]) {
      const bytes = sharedJson(value);
      expect(Buffer.from(bytes).equals(Buffer.from(JSON.stringify(value)))).to.equal(true);
      expect(bytes.buffer).to.be.instanceOf(SharedArrayBuffer);
    }
  });
});

describe("textPieces(text)", () => {
  it("takes pieces of at most 65,536 characters, and splits no pair of surrogates", () => {
    const pieces = [...textPieces("a\ud83d\ude00".repeat(50_000))];
    expect(Math.max(...pieces.map(({ length }) => length))).to.equal(65_536);
    expect(pieces.every((piece) => piece.isWellFormed())).to.equal(true);
    expect(pieces.join("")).to.have.length(150_000);
  });
});
