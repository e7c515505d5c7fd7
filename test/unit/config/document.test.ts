import { expect } from "chai";
import type { GatewayError } from "../../../core/action/error.ts";
import { parseDocument, plainValue, type YamlNode } from "../../../core/config/document.ts";
import { FaultList } from "../../../core/config/fault.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";
import { faultsOf } from "./fixture.ts";

describe("parseDocument(file, text, faults), in a configuration", () => {
  describe("when the text is more than plain data", () => {
    const table: [string, string, string[]][] = [
      [
        "an alias",
        "log: &a {level: info}\nstate: *a\n",
        ["1:9: expected a plain value, got an anchor", "2:8: expected a plain value, got an alias"],
      ],
      ["a merge key", "log:\n  <<: {level: info}\n", ["2:3: expected plain keys, got the merge key `<<`"]],
      ["a standard tag", "data_dir: !!str 5\n", ["1:17: expected a plain value, got the tag `tag:yaml.org,2002:str`"]],
      ["an unknown tag", "data_dir: !file x\n", ["1:11: expected a plain value, got a tag"]],
      ["a duplicate key", "log: {}\nlog: {}\n", ["2:1: expected each key once, got `log` again"]],
      ["a duplicate key in another spelling", 'log: {}\n"log": {}\n', ["2:1: expected each key once, got `log` again"]],
      ["a second document", "log: {}\n---\nstate: {}\n", ["2:1: expected one document, got a second"]],
      [
        "a second document after an end mark",
        "log: {}\n...\nstate: {}\n",
        ["3:1: expected one document, got a second"],
      ],
      ["a directive", "%YAML 1.1\n---\nlog: {}\n", ["1:1: expected no directives, got one"]],
      ["an unknown directive", "%FOO bar\n---\nlog: {}\n", ["1:1: expected no directives, got one"]],
      ["a key that is no string", "? [a]\n: b\n", ["1:3: expected a plain string as key"]],
    ];
    for (const [name, text, faults] of table) {
      it(`refuses ${name}`, async () => {
        expect(await faultsOf(text)).to.deep.equal(faults.map((fault) => `gateway.yaml:${fault}`));
      });
    }
  });

  describe("when the text is not YAML", () => {
    const table: [string, string, string][] = [
      ["a tab as indentation", "log:\n\tlevel: info\n", "2:1: expected spaces as indentation, got a tab"],
      [
        "an open quote",
        'data_dir: "abc\n',
        "2:1: expected a closing quote, a closing bracket, a comma, a colon, a space or another indentation here",
      ],
      ["an unknown escape", 'data_dir: "\\q"\n', "1:12: expected a known escape in the double-quoted string"],
      ["two keys on one line", "log: level: info\n", "1:6: expected one `key: value` on a line, got another inside it"],
    ];
    for (const [name, text, fault] of table) {
      it(`says where ${name} is`, async () => {
        expect((await faultsOf(text))[0]).to.equal(`gateway.yaml:${fault}`);
      });
    }

    it("quotes nothing of the file: it may hold a secret", async () => {
      const faults = await faultsOf("keys: [s3cr3t: 's3cr3t\n  s3cr3t: [s3cr3t\n");
      expect(faults).to.not.be.empty.and.not.include("s3cr3t");
      expect(faults.join()).to.not.include("s3cr3t");
    });
  });

  describe("when the text is empty", () => {
    for (const text of ["", "\n", "# only a comment\n", "---\n", "null\n"]) {
      it(`refuses ${JSON.stringify(text)}`, async () => {
        const faults = await faultsOf(text);
        expect(faults).to.have.length(1);
        expect(faults[0]).to.match(/expected a mapping, got nothing$/);
      });
    }
  });

  describe("when the text goes deeper than 32 levels", () => {
    const bombs: [string, (size: number) => string][] = [
      ["brackets", (size) => `log: ${"[".repeat(size)}`],
      ["braces", (size) => `log: ${"{a: ".repeat(size / 2)}`],
      ["dashes", (size) => `log:\n  ${"- ".repeat(size)}a`],
      ["question marks", (size) => "? ".repeat(size)],
      [
        "indentation",
        (size) => Array.from({ length: Math.sqrt(4 * size) }, (_, depth) => `${" ".repeat(depth)}k:`).join("\n"),
      ],
    ];
    for (const [name, textOf] of bombs) {
      it(`refuses ${name} in linear time`, async () => {
        const faults = await faultsOf(textOf(500_000));
        expect(faults).to.have.length(1);
        expect(faults[0]).to.match(/expected at most 32 levels, got more$/);
        expect(await growthOf(textOf, parse, 125_000)).to.be.below(maxGrowth);
      });
    }

    it("takes 32 levels and not 33", async () => {
      // Five levels around the settings: root, policy, packs, entry, settings.
      const nested = (depth: number): string =>
        `policy: {packs: [{path: p, settings: {a: ${"[".repeat(depth)}${"]".repeat(depth)}}}]}\n`;
      expect(await faultsOf(nested(27))).to.deep.equal([]);
      expect(await faultsOf(nested(28))).to.deep.equal(["gateway.yaml:1:70: expected at most 32 levels, got more"]);
    });
  });

  it("refuses more than 250000 tokens", async () => {
    const faults = await faultsOf("\n".repeat(250_001));
    expect(faults).to.have.length(1);
    expect(faults[0]).to.match(/expected at most 250000 tokens, got more$/);
  });

  it("finds a duplicate among 12,000 keys", async () => {
    const keys = Array.from({ length: 12_000 }, (_, index) => `        k${index}: 1\n`).join("");
    const faults = await faultsOf(`policy:\n  packs:\n    - path: p\n      settings:\n${keys}        k0: 2\n`);
    expect(faults).to.deep.equal(["gateway.yaml:12005:9: expected each key once, got `k0` again"]);
  });
});

function parse(text: string): YamlNode | readonly string[] {
  const faults = new FaultList("a.yaml");
  const root = parseDocument("a.yaml", text, faults);
  if (root !== undefined && faults.isEmpty) return root;
  try {
    return faults.throwAll();
  } catch (error) {
    return ((error as GatewayError).detail ?? "").split("\n");
  }
}

describe("parseDocument(file, text, faults)", () => {
  const refused: readonly [name: string, text: string, ...faults: string[]][] = [
    ["nothing", "", "a.yaml:1:1: expected a mapping, got nothing"],
    ["a duplicate key", "a: 1\nb: 2\na: 3", "a.yaml:3:1: expected each key once, got `a` again"],
    [
      "a duplicate `__proto__`",
      "{ __proto__: 1, __proto__: 2 }",
      "a.yaml:1:17: expected each key once, got `__proto__` again",
    ],
    ["a merge key", "a: { <<: { b: 1 } }", "a.yaml:1:6: expected plain keys, got the merge key `<<`"],
    [
      "an alias",
      "a: &x 1\nb: *x",
      "a.yaml:1:7: expected a plain value, got an anchor",
      "a.yaml:2:4: expected a plain value, got an alias",
    ],
    ["an unknown tag", "a: !secret 1", "a.yaml:1:4: expected a plain value, got a tag"],
    ["a known tag", "a: !!str 1", "a.yaml:1:10: expected a plain value, got the tag `tag:yaml.org,2002:str`"],
    ["a directive", "%YAML 1.1\n---\na: 1", "a.yaml:1:1: expected no directives, got one"],
    ["a second document", "a: 1\n---\nb: 2", "a.yaml:2:1: expected one document, got a second"],
    ["a key that is no text", "? [a]\n: 1", "a.yaml:1:3: expected a plain string as key"],
    ["a tab for an indent", "a:\n\tb: 1", "a.yaml:2:1: expected spaces as indentation, got a tab"],
    ["brackets without end", "[".repeat(100_000), "a.yaml:1:34: expected at most 32 levels, got more"],
    ["dashes without end", "- ".repeat(100_000), "a.yaml:1:66: expected at most 32 levels, got more"],
    ["questions without end", "? ".repeat(100_000), "a.yaml:1:66: expected at most 32 levels, got more"],
    [
      "indents without end",
      Array.from({ length: 40 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
      "a.yaml:33:35: expected at most 32 levels, got more",
    ],
    [
      "a number no double holds",
      "a: 9007199254740993",
      "a.yaml:1:4: expected a number that a double holds exactly, got one that it does not",
    ],
    ["infinity", "a: .inf", "a.yaml:1:4: expected a number that a double holds exactly, got one that it does not"],
  ];
  for (const [name, text, ...faults] of refused) {
    it(`refuses ${name} and says where`, () => {
      expect(parse(text)).to.deep.equal(faults);
    });
  }

  it("refuses an alias bomb before it is built", () => {
    const bomb = `a: &a [x]\n${Array.from({ length: 30 }, (_, i) => `k${i}: &k${i} [*a, *a, *a]`).join("\n")}`;
    expect(parse(bomb)).to.have.length(101);
  });

  it("reads twenty thousand keys in linear time", async () => {
    const keys = (count: number): string => Array.from({ length: count }, (_, index) => `k${index}: 1`).join("\n");
    expect(parse(keys(20_000))).to.have.property("kind", "map");
    expect(await growthOf(keys, parse, 5_000)).to.be.below(maxGrowth);
  });

  it("takes texts that look like something else as texts", () => {
    const root = parse('a: |\n  - [\nb: ">"\nc: yes\nd: 2026-01-01\ne: "&x *y !z"\nf: |\n  %YAML\ng: 010\n');
    expect(plainValue(root as YamlNode)).to.deep.equal({
      a: "- [\n",
      b: ">",
      c: "yes",
      d: "2026-01-01",
      e: "&x *y !z",
      f: "%YAML\n",
      g: 10,
    });
  });

  it("keeps `__proto__` a plain member", () => {
    const value = plainValue(parse("{ __proto__: { polluted: true } }") as YamlNode);
    expect(Object.keys(value as object)).to.deep.equal(["__proto__"]);
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
  });

  it("knows the place of a character inside a scalar", () => {
    const place = (text: string, offset: number): string => {
      const root = parse(text) as Extract<YamlNode, { kind: "map" }>;
      const value = root.members.get("a")?.value;
      if (value?.kind !== "scalar") throw new Error("expected a scalar");
      const { line, column } = value.placeAt(offset);
      return `${line}:${column}`;
    };
    expect(place("a: one two", 4)).to.equal("1:8");
    expect(place("a: 'one two'", 4)).to.equal("1:9");
    expect(place("x: 1\na: |\n  one\n    two\n", 6)).to.equal("4:5");
    expect(place("a: >\n  one\n  two\n", 4)).to.equal("1:4");
  });
});
