import { expect } from "chai";
import { Faults } from "../../../../core/policy/fault.ts";
import { parseYaml } from "../../../../core/policy/yaml/file.ts";
import { toJson, type YamlNode } from "../../../../core/policy/yaml/node.ts";

function parse(text: string): YamlNode | readonly string[] {
  const faults = new Faults();
  const root = parseYaml("a.yaml", text, faults);
  if (root !== undefined && faults.count === 0) return root;
  try {
    faults.throwIfAny("a");
  } catch (error) {
    return (error as Error).message.split("\n").slice(1);
  }
  return ["no root and no fault"];
}

describe("parseYaml(file, text, faults)", () => {
  const refused: readonly [name: string, text: string, ...faults: string[]][] = [
    ["nothing", "", "a.yaml:1:1: expected a mapping, got nothing"],
    ["a duplicate key", "a: 1\nb: 2\na: 3", "a.yaml:3:1: duplicate key `a`"],
    ["a duplicate `__proto__`", "{ __proto__: 1, __proto__: 2 }", "a.yaml:1:17: duplicate key `__proto__`"],
    ["a merge key", "a: { <<: { b: 1 } }", "a.yaml:1:6: expected no merge key; write the members out"],
    [
      "an alias",
      "a: &x 1\nb: *x",
      "a.yaml:1:7: expected no anchor",
      "a.yaml:2:4: expected no alias; write the value out",
    ],
    ["an unknown tag", "a: !secret 1", "a.yaml:1:4: expected a plain value, got a tag"],
    ["a known tag", "a: !!str 1", "a.yaml:1:10: expected no tag"],
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
      "a.yaml:1:4: expected a number that a double holds exactly, got `9007199254740993`",
    ],
    ["infinity", "a: .inf", "a.yaml:1:4: expected a number that a double holds exactly, got `.inf`"],
  ];
  for (const [name, text, ...faults] of refused) {
    it(`refuses ${name} and says where`, () => {
      expect(parse(text)).to.deep.equal(faults);
    });
  }

  it("refuses an alias bomb before it is built", () => {
    const bomb = `a: &a [x]\n${Array.from({ length: 30 }, (_, i) => `k${i}: &k${i} [*a, *a, *a]`).join("\n")}`;
    const started = performance.now();
    expect(parse(bomb)).to.have.length(101);
    expect(performance.now() - started).to.be.below(200);
  });

  it("reads twenty thousand keys in linear time", () => {
    const started = performance.now();
    expect(parse(Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join("\n"))).to.have.property(
      "kind",
      "map",
    );
    expect(performance.now() - started).to.be.below(1_500);
  });

  it("takes texts that look like something else as texts", () => {
    const root = parse('a: |\n  - [\nb: ">"\nc: yes\nd: 2026-01-01\ne: "&x *y !z"\nf: |\n  %YAML\ng: 010\n');
    expect(toJson(root as YamlNode)).to.deep.equal({
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
    const value = toJson(parse("{ __proto__: { polluted: true } }") as YamlNode);
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
