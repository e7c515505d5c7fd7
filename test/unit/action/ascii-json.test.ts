import { expect } from "chai";
import fc from "fast-check";
import { asciiJson, escapeJson, lineJson } from "../../../core/action/json.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

describe("asciiJson(value)", () => {
  it("prints what `JSON.stringify` does where that is printable ASCII", () => {
    const value = { a: ['"quoted" \\ ~', -5, null, true, "line\nbreak"], b: {} };
    expect(asciiJson(value)).to.equal(JSON.stringify(value));
  });

  it("prints nothing else than printable ASCII, and reads back as the same value [S51]", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const json = JSON.parse(JSON.stringify(value));
        const text = asciiJson(json);
        expect(text).to.match(/^[ -~]*$/);
        expect(JSON.parse(text)).to.deep.equal(json);
      }),
    );
  });

  it("escapes bidi, zero-width, C1, DEL and letters beyond the first plane [S51]", () => {
    expect(asciiJson("\u202e\u200b\u009b\u007f\u{1f600}~")).to.equal('"\\u202e\\u200b\\u009b\\u007f\\ud83d\\ude00~"');
  });

  it("takes linear time", async () => {
    expect(await growthOf((length) => "\u202e".repeat(length), asciiJson, 1_000_000)).to.be.below(maxGrowth);
  });
});

describe("escapeJson(text)", () => {
  it("keeps the ends of lines between values, and escapes what `asciiJson` does", () => {
    expect(escapeJson('{"a":"\u009b"}\n{"b":"\u202e"}\n')).to.equal('{"a":"\\u009b"}\n{"b":"\\u202e"}\n');
  });
});

describe("lineJson(value)", () => {
  it("prints what `JSON.stringify` does, but for what some readers take for ends of lines [S67]", () => {
    expect(lineJson({ a: "é\u202e\n" })).to.equal(JSON.stringify({ a: "é\u202e\n" }));
    expect(lineJson("a\u2028b\u2029c\u0085")).to.equal('"a\\u2028b\\u2029c\\u0085"');
  });

  it("takes linear time", async () => {
    expect(await growthOf((length) => "\u2028".repeat(length), lineJson, 1_000_000)).to.be.below(maxGrowth);
  });
});
