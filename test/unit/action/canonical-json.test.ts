import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import { expect } from "chai";
import fc from "fast-check";
import { canonicalJson, canonicalSha256, sha256Hex } from "../../../core/action/canonical-json.ts";
import type { Json } from "../../../core/action/json.ts";
import { roundsOf } from "../../support/rounds.ts";

/** RFC 8785, section 3.2.2 to 3.2.4 and appendix B. */
describe("canonicalJson(value)", () => {
  it("gives the RFC's own example byte for byte", () => {
    const source =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
    const expected =
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
    expect(canonicalJson(JSON.parse(source) as Json)).to.equal(expected);
  });

  it("sorts keys by UTF-16 code units, not by code points", () => {
    const source =
      '{"\\u20ac":"Euro","\\r":"CR","\\ufb33":"Dalet","1":"One","\\ud83d\\ude00":"Smile","\\u0080":"Ctl","\\u00f6":"o"}';
    expect(canonicalJson(JSON.parse(source) as Json)).to.equal(
      '{"\\r":"CR","1":"One","\u0080":"Ctl","ö":"o","€":"Euro","😀":"Smile","\ufb33":"Dalet"}',
    );
  });

  for (const [bits, text] of [
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
  ] as const) {
    it(`writes the double ${bits} as ${text}`, () => {
      expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).to.equal(text);
    });
  }

  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, "\ud800"]) {
    it(`refuses ${JSON.stringify(value) ?? "undefined"}`, () => {
      expect(() => canonicalJson(value as Json)).to.throw();
    });
  }

  it("gives the reference implementation's text for any JSON, its keys in order or not, and refuses what that refuses", () => {
    const ordered = fc.jsonValue().map((value) => JSON.parse(canonicalize(value) ?? "null"));
    const broken = fc
      .jsonValue()
      .chain((value) => fc.constantFrom([value, "\udc00"], { "a\ud800": value }, [[], Number.NaN]));
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue({ stringUnit: "binary" }), ordered, broken), (value) => {
        expect(attempt(() => canonicalJson(value as Json))).to.equal(attempt(() => canonicalize(value) ?? ""));
      }),
      { numRuns: roundsOf(500, 20_000) },
    );
  });
});

function attempt(print: () => string): string {
  try {
    return print();
  } catch {
    return "refused";
  }
}

describe("sha256Hex(text)", () => {
  it("is that of the UTF-8 bytes, also of a text that is hashed in pieces", () => {
    for (const filler of ["a", "\u00fc", "\u20ac", "\ud83d\ude00", "a\ud83d\ude00", "\ud83d", "\ude00"]) {
      for (const length of [1, 65_535, 65_536, 65_537, 65_538, 200_001]) {
        const text = filler.repeat(length);
        expect(sha256Hex(text), `${length} of ${JSON.stringify(filler)}`).to.equal(hash("sha256", text, "hex"));
      }
    }
  });
});

describe("canonicalSha256(value)", () => {
  it("is the digest of the canonical text, whether that is made as a whole or not", () => {
    const text = '\ud83d\ude00"\\\n'.repeat(50_000);
    const values: readonly Json[] = [null, text, [1, text, { a: text, b: {} }], { b: text, a: [text] }, { a: "short" }];
    for (const value of values) expect(canonicalSha256(value)).to.equal(hash("sha256", canonicalJson(value), "hex"));
  });

  it("is the digest of the canonical text of a large value whose keys are in no order", () => {
    const members = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`m-${(at * 7_919) % 3_000}`, at]));
    const texts = { z: "\ud83d\ude00\\".repeat(40_000), "10": "a", "9": [members], a: undefined };
    const values = [members, texts, [texts, [members, { b: 1, a: 2 }], null], { y: members, x: texts, "": {} }];
    for (const value of values as unknown as readonly Json[]) {
      expect(canonicalSha256(value)).to.equal(hash("sha256", canonicalJson(value), "hex"));
    }
  });

  it("refuses what has no canonical text", () => {
    const long = "a".repeat(100_000);
    for (const value of [`${long}\ud83d`, [long, Number.NaN], { "\ud83d": long }, { b: long, a: [Number.NaN] }]) {
      expect(() => canonicalSha256(value as Json)).to.throw(TypeError);
    }
  });
});
