import { expect } from "chai";
import type { ActionFacts } from "../../../../core/action/action-fact.ts";
import type { Phase } from "../../../../core/action/envelope.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import { functionArity, methodArity } from "../../../../core/policy/cel/check.ts";
import { CelEngine, ExpressionError } from "../../../../core/policy/cel/engine.ts";
import { evaluationUnits } from "../../../../core/policy/cel/meter.ts";
import { variablesOf } from "../../../../core/policy/cel/scope.ts";
import { shapes } from "../../../../core/policy/cel/syntax.ts";
import { makeAction } from "../../../support/action.ts";
import { evaluate, scopeOf } from "../../../support/expression.ts";

function faultOf(text: string, phases: readonly Phase[] = ["input"]): string {
  const compiled = new CelEngine().compile(text, scopeOf(phases));
  if (!("faults" in compiled)) return "no fault";
  return compiled.faults.map((fault) => `${fault.offset}: ${fault.message}`).join("; ");
}

describe("Expression.evaluate(variables)", () => {
  const args: JsonObject = {
    path: "/srv/a.txt",
    count: 5,
    nested: { size: 1.5, list: [1, 2, { deep: "x" }] },
    tags: ["a", "b"],
    empty: null,
    __proto__: "plain",
    constructor: "plain",
    text: "ABC%252eé😀",
  };
  const rows: readonly [text: string, value: unknown][] = [
    ['args.path == "/srv/a.txt"', true],
    ['arguments.path.startsWith("/srv/")', true],
    ["args.count > 4", true],
    ["args.count == 5", true],
    ["args.count in [4, 5]", true],
    ["args.count + 1.0 == 6.0", true],
    ["int(args.count) % 2 == 1", true],
    ["args.nested.size < 2", true],
    ['args.nested.list[2].deep == "x"', true],
    ['args.tags.exists(tag, tag == "b")', true],
    ["args.tags.all(tag, tag in args.tags)", true],
    ['args.tags.map(tag, tag + "!").join("-")', "a!-b!"],
    ['args.tags.filter(tag, tag != "a").size() == 1', true],
    ["has(args.path) && !has(args.other)", true],
    ["has(args.empty)", false],
    ['args["constructor"] == "plain"', true],
    ["args.text.size() == 10", true],
    ['args.text.lowerAscii().startsWith("abc")', true],
    ['args.text.unescaped().contains("C.")', true],
    ['"a-b-a".replace("a", "xx")', "xx-b-xx"],
    ['args.path.split("/")[1]', "srv"],
    ['args.path.substring(args.path.lastIndexOf("/") + 1)', "a.txt"],
    ['args.path.substring(1, 4) + "abc".substring(3)', "srv"],
    ['"abc".charAt(2) + "abc".charAt(3)', "c"],
    ['leaves(args).exists(leaf, leaf.key == "deep" && leaf.text == "x")', true],
    ['leaves(args).exists(leaf, leaf.text == "path")', true],
    ["leaves(args.count).size() == 0", true],
    ['leaves(args, 42).map(leaf, leaf.text).join(",")', "path,/srv/a"],
    ["leaves(args, 16).size() + leaves(args, -1).size() == 0", true],
    ["leaves(args, 1000000) == leaves(args)", true],
    ['["a", "b", "a"].distinct() == ["a", "b"]', true],
    ["[1, 1.0, [1], [1.0], null, null, true].distinct() == [1, [1], null, true]", true],
    ["args.tags.distinct().size() == 2", true],
    ["[[1, 2], [], [[3]], 4].flatten() == [1, 2, [3], 4]", true],
    ['history.map(past, past.hosts).flatten().distinct().exists(host, host.contains("x"))', false],
    ['args.path.glob("/srv/*.txt")', true],
    ['args.path.matches("^/srv/[a-z]+[.]txt$")', true],
    ["settings.limit == 3", true],
    ['"ada" in data.names', true],
    ['now > timestamp("2025-12-31T23:59:59Z") && now.getFullYear() == 2026', true],
    ["task == null", true],
    ['principal.key_id == "k1" && principal.role == "operator"', true],
    ["has(session.label) || has(tool_definition.digest)", false],
    ["[1, 2] + [3] == [1, 2, 3]", true],
    ['{"a": [1]} == {"a": [1.0]}', true],
    ["1 == 1.0 && 1 != 1.5", true],
    ['int("12") == 12 && double("1.5") == 1.5', true],
  ];
  for (const [text, value] of rows) {
    it(`gives ${JSON.stringify(value)} for ${text}`, () => {
      expect(evaluate(text, args)).to.equal(value);
    });
  }

  const errors: readonly [text: string, message: string][] = [
    ["args.other.deeper == 1", "field not found: other"],
    ["args.path.size.x", "field not found: size"],
    ["args.tags[9] == 1", "index 9 out of bounds [0, -1)"],
    ["args.path > 1", "found no matching overload for '_>_' applied to '(string, int)'"],
    ["1 / 0 == 1", "int divide by zero"],
    ['int("") == 0', "expected the text of a number for `int`"],
    ['double("abc") < 1.0', "expected the text of a number for `double`"],
    [`int("${"9".repeat(65)}") > 0`, "expected a text of at most 64 characters, got 65"],
    ["args.path.exists(x, true)", "found no matching overload for '@range' applied to '(string)'"],
    ["args.path.matches(args.pattern)", "field not found: pattern"],
    ['"abc".substring(2, 1) == ""', "expected offsets in order from 0 to 3, got 2 and 1"],
    ['"abc".substring(4) == ""', "expected offsets in order from 0 to 3, got 4 and 3"],
    ['"abc".substring(-1) == ""', "expected offsets in order from 0 to 3, got -1 and 3"],
    ['"abc".charAt(4) == ""', "expected offsets in order from 0 to 3, got 4 and 4"],
    ['"abc".charAt(-1) == ""', "expected offsets in order from 0 to 3, got -1 and 0"],
  ];
  for (const [text, message] of errors) {
    it(`fails for ${text.slice(0, 60)}`, () => {
      expect(evaluate(text, args)).to.equal(message);
    });
  }

  it("knows every function that a pack may call", () => {
    const calls = (arity: typeof methodArity, write: (name: string, given: string) => string): string[] =>
      Object.entries(arity).flatMap(([name, counts]) =>
        counts.map((count) => write(name, Array(count).fill("args.empty").join(", "))),
      );
    const texts = [
      ...calls(functionArity, (name, given) => `${name}(${given}) == true`),
      ...calls(methodArity, (name, given) => `args.empty.${name}(${given}) == true`),
    ];
    expect(texts.length).to.be.above(30);
    for (const text of texts) expect(String(evaluate(text, args)), text).not.to.contain("unbound function");
  });

  it("says nothing of a secret it could not convert", () => {
    expect(evaluate("int(args.key) > 0", { key: "sk-secret" })).to.equal("expected the text of a number for `int`");
    expect(evaluate("timestamp(args.key) > now", { key: "sk-secret" })).not.to.contain("sk-secret");
  });

  it("reaches nothing beyond its variables", () => {
    for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
      expect(faultOf(`${name} == 1`)).to.contain(`unknown variable \`${name}\``);
      expect(evaluate(`has(args.${name})`)).to.equal(false);
    }
    const names = ["constructor", "__proto__", "toString", "hasOwnProperty", "action", "pack", "locals"];
    for (const name of names) {
      const engine = new CelEngine();
      const compiled = engine.compile(`${name} == 1`, new Map([[name, shapes.json]]));
      if ("faults" in compiled) throw new Error("expected an expression");
      engine.meter.left = evaluationUnits;
      const variables = variablesOf(makeAction(), { settings: {}, data: {} });
      expect(() => compiled.expression.evaluate(variables), name).to.throw(ExpressionError, "unresolved attribute");
    }
  });

  it("keeps what a caller named `constructor` plain data at every level", () => {
    const hostile = { inner: { constructor: { name: "Object" }, value: 1 } };
    expect(evaluate("args.inner.value == 1", hostile)).to.equal(true);
  });
});

const mayBeAbsent = "may be absent: add `fact: shell` to the rule's `match`, or guard it with `has(facts.shell)`";

describe("CelEngine.compile(text, scope)", () => {
  const facts: ActionFacts = { hosts: [], paths: [], more: false, effect: "read", git: [] };
  const guarded: readonly (readonly [text: string, value: boolean])[] = [
    ["has(facts.shell) && facts.shell.parsed", false],
    ["facts.shell.parsed && has(facts.shell)", false],
    ["!has(facts.shell) || facts.shell.parsed", true],
    ["tool == 'x' || !(has(facts.shell) && facts.shell.parsed)", true],
    ["has(facts.shell) ? facts.shell.parsed : true", true],
    ["!has(facts.shell) ? true : facts.shell.parsed", true],
    ["has(facts.git) && tool == 'read_note' && facts.git.all(g, g.force)", true],
    ["has(facts.shell) && facts.shell.commands.exists(c, has(facts.git) && facts.git == [])", false],
    ["facts.effect == 'read'", true],
  ];
  for (const [text, value] of guarded) {
    it(`takes ${text}, which needs no facts that may be absent`, () => {
      const engine = new CelEngine();
      const compiled = engine.compile(text, scopeOf(["input"]));
      if ("faults" in compiled) throw new Error(compiled.faults[0]?.message);
      engine.meter.left = evaluationUnits;
      const variables = variablesOf(makeAction({ facts }), { settings: {}, data: {} });
      expect(compiled.expression.evaluate(variables)).to.equal(value);
    });
  }

  it("gives an error, and never false, for facts that are absent", () => {
    const engine = new CelEngine();
    const compiled = engine.compile("facts.shell.parsed", scopeOf(["input"]), new Set(["facts.shell"]));
    if ("faults" in compiled) throw new Error(compiled.faults[0]?.message);
    engine.meter.left = evaluationUnits;
    const variables = variablesOf(makeAction({ facts }), { settings: {}, data: {} });
    expect(() => compiled.expression.evaluate(variables)).to.throw(ExpressionError, "shell");
  });

  const rows: readonly [text: string, fault: string][] = [
    ["arg.path == 1", "0: unknown variable `arg`; did you mean `args`?"],
    ["principal.rol == 'admin'", "9: unknown field `rol`; did you mean `role`?"],
    ["settings.limits == 1", "8: unknown field `limits`; did you mean `limit`?"],
    ["data.name == 1", "4: unknown field `name`; did you mean `names`?"],
    ["output.text == 1", "0: `output` is available in phase `output` only; name the phase in `match`"],
    ['args.path.startWith("/")', "9: unknown function `startWith`; did you mean `startsWith`?"],
    ["args.path.startsWith()", "9: expected 1 arguments for `startsWith`, got 0"],
    ['"%s".format([args.x]) == ""', "4: unknown function `format`"],
    [
      "bytes(args.x) == b''",
      "0: unknown function `bytes`; 17: expected a bool, int, double or text, got bytes or an unsigned integer",
    ],
    ["args.x == 1u", "10: expected a bool, int, double or text, got bytes or an unsigned integer"],
    ["google.protobuf.Struct{} == 1", "0: unknown type"],
    ["type(args.x) == int", "0: unknown function `type`; 16: unknown variable `int`"],
    [
      "args.count + 1 > 2",
      "11: expected `+` between two of a kind, got an int and a number out of JSON, which is a double; write `1.0` for `1`, or `int(…)` around the double",
    ],
    [
      "size(args.l) * 1.5 > 2.0",
      "12: expected `*` between two of a kind, got an int and a double; write `1.0` for `1`, or `int(…)` around the double",
    ],
    ["args.l.exists(x, x + 1 > 2)", "18: expected `+` between two of a kind"],
    ['tool.matches("(?<=a)b")', "13: not an RE2 pattern: error parsing regexp: invalid named capture: `(?<=a)b`"],
    ['tool.matches("(a)\\\\1")', "13: not an RE2 pattern: error parsing regexp: invalid escape sequence: `\\1`"],
    [
      'tool.matches("(?!a)b")',
      "13: not an RE2 pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
    ],
    ["history.distinct()[0].tol == ''", "21: unknown field `tol`; did you mean `tool`?"],
    ["history.map(past, past.hosts).distinct(1) == []", "29: expected 0 arguments for `distinct`, got 1"],
    ["[facts.hosts].flatten()[0].name == ''", "26: expected a map before `.name`, got string"],
    ["args.l.flaten() == []", "6: unknown function `flaten`; did you mean `flatten`?"],
    ["facts.shell.command == []", "11: unknown field `command`; did you mean `commands`?"],
    ["facts.git.exists(g, g.forced)", "21: unknown field `forced`"],
    ["facts.shel == 1", "5: unknown field `shel`; did you mean `shell`?"],
    ["facts.shell.parsed", `5: \`facts.shell\` ${mayBeAbsent}`],
    ["has(facts.shell.parsed)", `9: \`facts.shell\` ${mayBeAbsent}`],
    ["has(facts.shell) || facts.shell.parsed", `25: \`facts.shell\` ${mayBeAbsent}`],
    ["!has(facts.shell) && facts.shell.parsed", `26: \`facts.shell\` ${mayBeAbsent}`],
    ["has(facts.git) && facts.shell.parsed", `23: \`facts.shell\` ${mayBeAbsent}`],
    ["has(facts.shell) ? true : facts.shell.parsed", `31: \`facts.shell\` ${mayBeAbsent}`],
    ["args.l.exists(x, has(facts.shell)) && facts.shell.parsed", `43: \`facts.shell\` ${mayBeAbsent}`],
    [
      "has(facts.url) && facts.url.exists(u, u.address == '::1')",
      "39: `u.address` may be absent: it is there for hosts that are an address, or guard it with `has(u.address)`",
    ],
    ["tool.name == 'x'", "4: expected a map before `.name`, got string"],
    ["has(args.a) && args.a.contains('b.c)", "31: not an expression: expected a closing `'` for this one"],
    ["args.a &&& args.b", "7: not an expression: found & but expecting end of input"],
    [`${"(".repeat(33)}1${")".repeat(33)}`, "32: expected brackets at most 32 deep, got more"],
    [`args.a${" + args.a".repeat(120)} == 1.0`, "0: expected an expression at most 100 deep, got a deeper one"],
    ["x".repeat(4_097), "0: expected an expression of at most 4096 characters, got 4097"],
  ];
  for (const [text, fault] of rows) {
    it(`refuses ${text.slice(0, 48)} and says why`, () => {
      expect(faultOf(text)).to.contain(fault);
    });
  }

  it("gives each phase its variables", () => {
    expect(faultOf("args.x == 1", ["list"])).to.contain("`args` is available in phase `input` and `output` only");
    expect(faultOf("output.x == 1", ["input", "output"])).to.contain("`output` is available in phase `output` only");
    expect(faultOf("output.x == 1 && args.x == 1", ["output"])).to.equal("no fault");
    const whole = 'tool_definition.description.contains("x") || has(tool_definition.input_schema.properties.y)';
    expect(faultOf(whole, ["list"])).to.equal("no fault");
    expect(faultOf(whole, ["list", "input"])).to.contain("unknown field `description`");
  });

  it("reads texts and brackets inside texts as text", () => {
    expect(faultOf(`tool == "${"(".repeat(100)}\\""`)).to.equal("no fault");
  });
});
