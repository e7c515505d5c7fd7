import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../core/action/error.ts";
import type { Json } from "../../../core/action/json.ts";
import { type JsonBounds, parseStrictJson } from "../../../core/action/strict-json.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const bounds: JsonBounds = { depth: 8, nodes: 50, stringLength: 20, reader: "exact" };

function parse(text: string | Uint8Array, changed: Partial<JsonBounds> = {}): Json {
  return parseStrictJson(typeof text === "string" ? Buffer.from(text) : text, { ...bounds, ...changed });
}

function fault(text: string | Uint8Array, changed: Partial<JsonBounds> = {}): string {
  try {
    parse(text, changed);
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

describe("parseStrictJson(bytes, bounds)", () => {
  describe("when two readers could disagree", () => {
    for (const [name, text, said] of [
      ["a duplicate key", '{"a":1,"a":2}', "MALFORMED_JSON malformed JSON: duplicate key `a` at offset 7"],
      ["a duplicate key in another spelling", '{"a":1,"\\u0061":2}', "duplicate key `a` at offset 7"],
      ["a duplicate key deep inside", '[{"x":{"b":1,"b":1}}]', "duplicate key `b` at offset 13"],
      [
        "an integer beyond 2^53",
        "[9007199254740993]",
        "number `9007199254740993` at offset 1 does not fit a double exactly",
      ],
      [
        "an integer beyond 2^53 in another spelling",
        "[1e20]",
        "number `1e20` at offset 1 does not fit a double exactly",
      ],
      ["an overflowing number", "[1e400]", "number `1e400` at offset 1 does not fit a double exactly"],
      ["a number that vanishes", "[1e-400]", "number `1e-400` at offset 1 does not fit a double exactly"],
      ["negative zero", "[-0]", "negative zero at offset 1"],
      ["negative zero in another spelling", "[-0.0e5]", "negative zero at offset 1"],
      ["a lone surrogate", '["\\ud800"]', "lone surrogate in the string at offset 1"],
      ["a lone surrogate in capitals", '["\\u00e9","\\uDBFF"]', "lone surrogate in the string at offset 10"],
      [
        "a lone surrogate after whole ones",
        '["\\ud83d\\ude00","\\ud83d"]',
        "lone surrogate in the string at offset 16",
      ],
      ["a lone surrogate in a key", '{"\\udc00":1}', "lone surrogate in the string at offset 1"],
      ["an escaped NUL", '["a\\u0000"]', "NUL in the string at offset 1"],
      ["a byte order mark", "\ufeff{}", "expected no byte order mark"],
      ["an unterminated string", '["abc', "unterminated string at offset 1"],
      ["two values", "{} {}", "MALFORMED_JSON"],
      ["a comment", "{} // x", "MALFORMED_JSON"],
      ["nothing", "", "MALFORMED_JSON malformed JSON: unexpected end"],
      ["a raw control character", '["a\u0001"]', "MALFORMED_JSON"],
      ["a bad escape", '["\\x"]', "bad escape in the string at offset 1"],
      ["a duplicate key whose first value is a tree", '{"a":{"b":1,"c":[{}]},"a":1}', "duplicate key `a` at offset 22"],
      ["a duplicate of `__proto__`", '{"__proto__":{},"__proto__":{}}', "duplicate key `__proto__` at offset 16"],
      ["a duplicate key behind a bad number", '{"a":1,"a":1,"b":-}', "MALFORMED_JSON"],
      ["a colon in a list", "[1:2]", "MALFORMED_JSON"],
      ["a value where a comma belongs", '{"a":1 "b":2}', "MALFORMED_JSON"],
      ["a key that is no string", "{1:2}", "MALFORMED_JSON"],
      ["a literal that is none", '{"a":trux}', "MALFORMED_JSON"],
      ["a leading zero", "[007]", "MALFORMED_JSON"],
    ] as const) {
      it(`refuses ${name}`, () => {
        expect(fault(text)).to.contain(said);
      });
    }

    it("refuses invalid UTF-8", () => {
      expect(fault(Uint8Array.of(0x22, 0xc3, 0x28, 0x22))).to.equal(
        "MALFORMED_JSON malformed JSON: expected UTF-8, got invalid bytes",
      );
    });

    it("quotes nothing of a text that is not JSON, because it may hold a secret", () => {
      expect(fault("{hunter2}")).not.to.contain("hunter2");
      expect(fault('{"a": hunter2}')).not.to.contain("hunter2");
    });
  });

  describe("when a bound is exceeded", () => {
    it("refuses depth before building anything, in no more than linear time", async () => {
      expect(fault("[".repeat(1_000_000))).to.equal(
        "JSON_BOUND JSON exceeds a bound: expected at most 8 levels, got more at offset 8",
      );
      expect(await growthOf((levels) => "[".repeat(levels), fault, 1_000_000)).to.be.below(maxGrowth);
    });

    it("accepts exactly the depth allowed", () => {
      expect(parse(`${"[".repeat(8)}${"]".repeat(8)}`)).to.deep.equal([[[[[[[[]]]]]]]]);
    });

    for (const [what, textOf] of [
      ["white space", (size: number) => `[${" ".repeat(size)}1]`],
      ["digits", (size: number) => `[0.${"1".repeat(size)}]`],
      ["no JSON", (size: number) => "a".repeat(size)],
      ["numbers without commas", (size: number) => "1 ".repeat(size / 2)],
      ["strings without commas", (size: number) => '""'.repeat(size / 2)],
      ["closing brackets", (size: number) => "]".repeat(size)],
      ["colons", (size: number) => ":".repeat(size)],
      ["escapes", (size: number) => `["${"\\n".repeat(size / 2)}"]`],
      ["escaped code units", (size: number) => `["${"\\u0061".repeat(size / 6)}"]`],
      ["backslashes", (size: number) => `["${"\\\\".repeat(size / 2)}"]`],
      ["quotes", (size: number) => `["${'\\"'.repeat(size / 2)}"]`],
    ] as const) {
      it(`reads ${what} in no more than linear time`, async () => {
        const read = (text: string): string => fault(text, { stringLength: 1e7 });
        expect(await growthOf(textOf, read, 1_000_000)).to.be.below(maxGrowth);
      });
    }

    it("refuses too many members of one object, at whatever level, and takes as many in several", () => {
      const few = { members: 3 };
      const three = '{"a":1,"b":{},"c":[1,2,3,4,5]}';
      expect(fault(`[${three},${three}]`, few)).to.equal("accepted");
      expect(fault(`{"x":${three},"y":[${three}],"z":1}`, few)).to.equal("accepted");
      const four = '{"a":1,"b":{},"c":[1],"d":2}';
      const said = "JSON_BOUND JSON exceeds a bound: expected at most 3 members in an object, got more at offset ";
      expect(fault(four, few)).to.equal(`${said}21`);
      expect(fault(`{"x":[0,${four}]}`, few)).to.equal(`${said}29`);
      expect(fault(`{"x":${three},"y":1,"z":2,"v":3}`, few)).to.include(said);
      expect(fault(four)).to.equal("accepted");
    });

    it("refuses too many members and too long strings", () => {
      expect(fault(JSON.stringify(Array(60).fill(1)))).to.contain("expected at most 50 members and items");
      expect(fault(JSON.stringify("x".repeat(21)))).to.contain("expected strings of at most 20 characters");
      expect(fault(JSON.stringify({ ["x".repeat(21)]: 1 }))).to.contain("expected strings of at most 20 characters");
    });
  });

  it("reads `__proto__` and its like as plain members", () => {
    const value = parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}') as Record<
      string,
      unknown
    >;
    expect(Object.keys(value)).to.deep.equal(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
  });

  it("rounds numbers and keeps NUL where an upstream's answer is read", () => {
    expect(parse('["a\\u0000"]', { reader: "tolerant" })).to.deep.equal(["a\0"]);
    expect(parse("[12345678901234567890]", { reader: "tolerant" })).to.deep.equal([12345678901234567000]);
    expect(fault('{"a":1,"a":1}', { reader: "tolerant" })).to.contain("duplicate key");
  });

  it("refuses a duplicate key wherever it stands, and however it is spelled", () => {
    const wide: JsonBounds = { depth: 100, nodes: 1e6, stringLength: 1e6, reader: "tolerant" };
    const tree = fc.letrec((tie) => ({
      value: fc.oneof({ depthSize: "small" }, fc.integer(), fc.constant("x:,{}[]"), tie("list"), tie("object")),
      list: fc.array(tie("value"), { maxLength: 4 }),
      object: fc.dictionary(fc.constantFrom("a", "b", "é", "__proto__", "1", "toString", ""), tie("value")),
    })).object;
    const spelled = (key: string): string =>
      `"${[...key].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`;
    fc.assert(
      fc.property(tree, fc.boolean(), fc.nat(), (value, isSpelled, at) => {
        const text = JSON.stringify(value);
        expect(parse(text, wide)).to.deep.equal(JSON.parse(text));
        const keys = Object.keys(value as object);
        const key = keys[at % Math.max(keys.length, 1)];
        fc.pre(key !== undefined);
        const again = isSpelled ? spelled(key as string) : JSON.stringify(key);
        expect(fault(`${text.slice(0, -1)},${again}:0}`, wide)).to.contain("duplicate key");
      }),
    );
  });

  it("agrees with JSON.parse on every text that is nearly JSON: what it refuses is refused", () => {
    const wide: JsonBounds = { depth: 100, nodes: 1e6, stringLength: 1e6, reader: "tolerant" };
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"a"',
      '"b"',
      "1",
      "-",
      "0.5",
      "e3",
      "true",
      "null",
      " ",
      "\n",
      "\\",
      '"',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (parts) => {
        const text = parts.join("");
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expect(fault(text, wide)).to.contain("MALFORMED_JSON");
          return;
        }
        const got = fault(text, wide);
        if (got === "accepted") expect(parse(text, wide)).to.deep.equal(expected);
        else expect(got).to.contain("duplicate key");
      }),
      { numRuns: 20_000 },
    );
  });

  it("agrees with JSON.parse on every text JSON.stringify makes", () => {
    const wide: JsonBounds = { depth: 100, nodes: 1e6, stringLength: 1e6, reader: "tolerant" };
    fc.assert(
      fc.property(fc.json({ stringUnit: "binary" }), (text) => {
        fc.pre(!text.includes("\\u0000") && JSON.stringify(JSON.parse(text)).isWellFormed());
        fc.pre(!/\\ud[89a-f]/.test(text));
        expect(parse(text, wide)).to.deep.equal(JSON.parse(text));
      }),
    );
  });
});
