import { expect } from "chai";
import type { Json } from "../../../../core/action/json.ts";
import { ExpressionBuilder } from "../../../../core/policy/cel/compiler.ts";
import { CelEngine, ExpressionError } from "../../../../core/policy/cel/engine.ts";
import { evaluationUnits, Meter } from "../../../../core/policy/cel/meter.ts";
import { PatternCache } from "../../../../core/policy/cel/pattern.ts";
import { variablesOf } from "../../../../core/policy/cel/scope.ts";
import { parseExpression } from "../../../../core/policy/cel/syntax.ts";
import { makeAction } from "../../../support/action.ts";
import { evaluate, scopeOf } from "../../../support/expression.ts";

const pack = { settings: {}, data: {} };

describe("the work an expression may do", () => {
  const many = Array.from({ length: 20_000 }, (_, index) => index);
  const spent = "the expression spent more work than one evaluation may";
  const bombs: readonly [name: string, text: string, args: Json, message: RegExp | string][] = [
    ["nested loops", "args.l.exists(a, args.l.exists(b, a == -b - 1.0))", { l: many }, spent],
    ["a loop whose error `||` swallows", "true || args.l.exists(a, args.l.all(b, true))", { l: many }, "no error"],
    [
      "a swallowed error in a loop",
      "args.l.all(a, args.l.exists(b, b < 0 && a < 0) || true) || true",
      { l: many },
      spent,
    ],
    ["membership in a loop", "args.l.all(a, a in args.l)", { l: many }, spent],
    ["a wide loop body", `args.l.all(a, [${"a,".repeat(900)}a].size() > 0)`, { l: many }, spent],
    ["an inner range walked again and again", "args.l.all(a, args.l.exists(b, true))", { l: many }, spent],
    [
      "comparing shared parts",
      "args.l.map(a, args.l.map(b, args.l)) == args.l.map(a, args.l.map(b, args.l))",
      { l: many.slice(0, 150) },
      spent,
    ],
    [
      "growing a text",
      `${"args.t + ".repeat(20)}args.t == ""`,
      { t: "x".repeat(65_536) },
      /at most 1048576 characters/,
    ],
    [
      "replacing into vastness",
      'args.t.replace("x", args.t).size() > 0',
      { t: "x".repeat(65_536) },
      /at most 1048576 characters/,
    ],
    [
      "joining into vastness",
      "args.l.map(a, args.t).join().size() > 0",
      { l: many, t: "x".repeat(65_536) },
      /at most 1048576 characters/,
    ],
    [
      "a search that cannot skip",
      "args.t.contains(args.n)",
      { t: "a".repeat(65_536), n: `b${"a".repeat(4_000)}` },
      /at most 1024 characters/,
    ],
    ["time zones in a loop", 'args.l.all(a, now.getHours("Europe/Paris") >= 0)', { l: many }, spent],
    [
      "patterns made in a loop",
      'args.l.all(a, !"".matches("x{1," + string(int(a) % 900 + 1) + "}"))',
      { l: many.slice(0, 300) },
      spent,
    ],
    ["telling lists apart", "args.l.map(a, [a]).distinct().size() > 0", { l: many }, spent],
    ["flattening a list of one list", "args.l.map(a, args.l).flatten().size() > 0", { l: many }, spent],
    [
      "the first leaves again and again",
      "args.l.all(a, leaves(args, 9000).size() > 0)",
      { l: many, t: many.map(String) },
      spent,
    ],
    ["leaves again and again", "args.l.all(a, leaves(args).size() > 0)", { l: many, t: many.map(String) }, spent],
  ];
  for (const [name, text, args, message] of bombs) {
    it(`is bounded for ${name}`, () => {
      const result = evaluate(text, args);
      if (message === "no error") expect(result).to.equal(true);
      else if (typeof message === "string") expect(result).to.equal(message);
      else expect(result).to.match(message);
    });
  }

  it("suffices for honest loops over thousands of items", () => {
    expect(evaluate("args.l.map(a, a + 1.0).filter(a, a > 2.0).size() > 9000", { l: many.slice(0, 10_000) })).to.equal(
      true,
    );
  });

  it("suffices for asking a rule's own pattern about thousands of texts", () => {
    const texts = many.slice(0, 5_000).map((number) => `item ${number}`);
    expect(evaluate('args.l.all(a, a.matches("item [0-9]"))', { l: texts })).to.equal(true);
  });

  it("is bounded by the meter alone: one that forgets to charge lets a bomb go off", () => {
    const forgetful = Object.assign(new Meter(), { charge: () => undefined });
    const run = (meter: Meter): unknown => {
      const parsed = parseExpression("args.l.all(a, args.l.all(b, true))");
      if (!("root" in parsed)) throw new Error("expected an expression");
      meter.left = 1_000;
      const evaluate = new ExpressionBuilder(meter, new PatternCache()).compile(parsed.root, new Map());
      return evaluate(variablesOf(makeAction({ arguments: { l: many.slice(0, 300) } }), pack));
    };
    expect(() => run(new Meter())).to.throw(RangeError, "spent more than 500000 work units");
    expect(run(forgetful)).to.equal(true);
  });

  it("is whole again for the next action", () => {
    const engine = new CelEngine();
    const compiled = engine.compile("args.l.exists(a, args.l.exists(b, a < 0))", scopeOf(["input"]));
    if ("faults" in compiled) throw new Error("expected an expression");
    const ask = (l: readonly number[]): unknown => {
      engine.meter.left = evaluationUnits;
      return compiled.expression.evaluate(variablesOf(makeAction({ arguments: { l } }), pack));
    };
    expect(() => ask(many)).to.throw(ExpressionError, spent);
    expect(ask([1])).to.equal(false);
  });
});
