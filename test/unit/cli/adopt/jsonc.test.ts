import { expect } from "chai";
import { type JsoncObject, jsonOf, parseJsonc, replaceMembers } from "../../../../core/cli/adopt/jsonc.ts";

function replaced(text: string, ...names: readonly string[]): string {
  return replaceMembers(text, parseJsonc(text) as JsoncObject, new Set(names), "gateway", {
    url: "u",
    headers: { a: "b" },
  });
}

describe("parseJsonc(text)", () => {
  it("reads comments, trailing commas, a byte order mark and every kind of value", () => {
    const text =
      '\ufeff// top\n{ "a": [1, -2.5e3, true, null, "\\u00e9\\"",], /* in */ "b": { "c": {}, }, } // end\n/* last */';
    expect(jsonOf(parseJsonc(text))).to.deep.equal({ a: [1, -2500, true, null, 'é"'], b: { c: {} } });
  });

  it("keeps `__proto__` as a member like others", () => {
    const value = jsonOf(parseJsonc('{ "__proto__": { "polluted": 1 } }'));
    expect(Object.keys(value as object)).to.deep.equal(["__proto__"]);
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
  });

  for (const [text, message] of [
    ["", "1:1: expected a value"],
    ['{ "a": 1', "1:9: expected a comma or `}`"],
    ['{ "a": 1 "b": 2 }', "1:10: expected a comma or `}`"],
    ["{ a: 1 }", "1:3: expected a name in quotation marks"],
    ['{ "a": secret-value }', "1:8: expected a value"],
    ['{\n  "a": 1,\n  "a": 2 }', "3:3: expected each name once"],
    ['{ "a": "b\n" }', "1:8: expected the end of a string"],
    ['{ "a": "\\x" }', "1:8: expected a string as JSON writes it"],
    ["[,]", "1:2: expected a value"],
    ["{} {}", "1:4: expected the end of the file"],
    ["/* never closed", "1:16: expected a value"],
    [`${"[".repeat(70)}${"]".repeat(70)}`, "1:66: expected at most 64 levels"],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 30))} with its place, and quotes none of it`, () => {
      expect(() => parseJsonc(text)).to.throw(SyntaxError, message);
      expect(() => parseJsonc(text)).to.not.throw(/secret-value/);
    });
  }

  it("reads a hundred thousand brackets without a deep stack", () => {
    expect(() => parseJsonc("[".repeat(100_000))).to.throw(SyntaxError, "at most 64 levels");
  });
});

describe("replaceMembers(text, object, names, name, value)", () => {
  it("replaces the first in its place, removes the others with their lines, and keeps comments", () => {
    const text = `{
  // one
  "a": { "x": 1 }, // behind a
  "kept": {}, /* behind kept */
  "b": {
    "y": 2
  },
  // about c
  "c": 3 // behind c
}
`;
    expect(replaced(text, "a", "b", "c")).to.equal(`{
  // one
  "gateway": {
    "url": "u",
    "headers": {
      "a": "b"
    }
  }, // behind a
  "kept": {} /* behind kept */
  // about c
   // behind c
}
`);
  });

  it("removes the last one without a trailing comma, and with one", () => {
    expect(replaced('{"a":1,"b":2,"c":3}', "b", "c")).to.equal('{"a":1,"gateway": {"url":"u","headers":{"a":"b"}}}');
    expect(replaced('{\n\t"a": 1,\n\t"b": 2,\n\t"c": 3,\n}', "a", "c")).to.equal(
      '{\n\t"gateway": {\n\t\t"url": "u",\n\t\t"headers": {\n\t\t\t"a": "b"\n\t\t}\n\t},\n\t"b": 2,\n}',
    );
  });

  it("writes the line ends of the file", () => {
    expect(replaced('{\r\n    "a": 1,\r\n    "b": 2\r\n}\r\n', "b")).to.equal(
      '{\r\n    "a": 1,\r\n    "gateway": {\r\n        "url": "u",\r\n        "headers": {\r\n            "a": "b"\r\n        }\r\n    }\r\n}\r\n',
    );
  });

  it("leaves JSON for every choice of members, in four ways of writing them", () => {
    const names = ["a", "b", "c", "d"];
    const forms = [
      (body: readonly string[]) => `{${body.join(",")}}`,
      (body: readonly string[]) => `{\n  ${body.join(",\n  ")}\n}`,
      (body: readonly string[]) => `{\n  ${body.join(" // x,\n  ,")}\n}`,
      (body: readonly string[]) => `{ ${body.join(", ")}, }`,
    ];
    for (const form of forms) {
      const text = form(names.map((name, at) => `"${name}": { "n": ${at} }`));
      for (let bits = 1; bits < 16; bits++) {
        const chosen = names.filter((_, at) => (bits & (1 << at)) !== 0);
        const left = names.filter((name) => !chosen.includes(name));
        const read = jsonOf(parseJsonc(replaced(text, ...chosen))) as Readonly<Record<string, unknown>>;
        expect(Object.keys(read).toSorted(), text).to.deep.equal([...left, "gateway"].toSorted());
        for (const name of left) expect(read[name]).to.deep.equal({ n: names.indexOf(name) });
      }
    }
  });
});
