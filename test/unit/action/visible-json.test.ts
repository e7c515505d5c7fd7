import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../core/action/json.ts";
import { visibleJson } from "../../../core/action/visible-text.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const seen = fc.constantFrom(...'ab "\\/\n\t\r{}[]:,日é');

describe("visibleJson(value)", () => {
  it("prints what `JSON.stringify` with two spaces does, where nothing is hidden", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: seen }), (value) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        expect(visibleJson(json)).to.equal(JSON.stringify(json, undefined, 2));
      }),
    );
  });

  it("shows names and texts whole, escaped and with their notes [S51]", () => {
    const value = JSON.parse(
      '{"__proto__":{"p\\u0430th":"a\\u202eb\\nc"},"n":[1e21,0.1,-5,null,true],"e":[{},[],""],"t":"\\u03bfmega"}',
    ) as Json;
    expect(visibleJson(value)).to.equal(
      [
        "{",
        '  "__proto__": {',
        '    "p\u0430th": "a\\u{202e}b\\nc" // mixes Latin and Cyrillic letters',
        "  },",
        '  "n": [',
        "    1e+21,",
        "    0.1,",
        "    -5,",
        "    null,",
        "    true",
        "  ],",
        '  "e": [',
        "    {},",
        "    [],",
        '    ""',
        "  ],",
        '  "t": "\u03bfmega" // mixes Latin and Greek letters',
        "}",
      ].join("\n"),
    );
  });

  it("keeps a note of its own apart from a text that looks like one", () => {
    expect(visibleJson(["a // mixes Latin and Greek letters"])).to.equal(
      '[\n  "a // mixes Latin and Greek letters"\n]',
    );
  });

  it("prints a mebi in one text whole, in linear time [S51]", async () => {
    const text = "\u202e".repeat(1_048_576);
    expect(visibleJson({ text })).to.have.length(`{\n  "text": ""\n}`.length + text.length * 8);
    expect(await growthOf((size) => ({ text: text.slice(-size) }), visibleJson, 262_144)).to.be.below(maxGrowth);
  });

  it("prints what is very deep, and grows with it no more than in proportion", () => {
    let deep: Json = "end";
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    const lines = visibleJson(deep).split("\n");
    expect(lines).to.have.length(200_001);
    expect(lines[100_000]?.trim()).to.equal('"end"');
    expect(Math.max(...lines.slice(99_990, 100_010).map((line) => line.length))).to.be.below(80);
  });
});
