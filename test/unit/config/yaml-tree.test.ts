import { expect } from "chai";
import { faultsOf } from "./fixture.ts";

describe("readYamlTree(text, faults)", () => {
  describe("when the text is more than plain data", () => {
    const table: [string, string, string[]][] = [
      [
        "an alias",
        "log: &a {level: info}\nstate: *a\n",
        [
          "1:9: expected a plain value, got an anchor",
          "2:8: expected a plain value, got an alias",
          "2:8: state: expected a mapping, got nothing",
        ],
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
        "2:1: expected a closing quote, a closing bracket, a comma, a colon or a space here",
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
    const bombs: [string, string][] = [
      ["brackets", `log: ${"[".repeat(500_000)}`],
      ["braces", `log: ${"{a: ".repeat(250_000)}`],
      ["dashes", `log:\n  ${"- ".repeat(500_000)}a`],
      ["question marks", "? ".repeat(500_000)],
      ["indentation", Array.from({ length: 1400 }, (_, depth) => `${" ".repeat(depth)}k:`).join("\n")],
    ];
    for (const [name, text] of bombs) {
      it(`refuses ${name} at once`, async () => {
        const start = performance.now();
        const faults = await faultsOf(text);
        expect(faults).to.have.length(1);
        expect(faults[0]).to.match(/expected at most 32 levels, got more$/);
        expect(performance.now() - start).to.be.below(500);
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
