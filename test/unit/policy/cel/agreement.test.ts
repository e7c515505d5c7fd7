import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { tests as conformance } from "@bufbuild/cel-spec/testdata/conformance.js";
import type { SerializedIncrementalTestSuite } from "@bufbuild/cel-spec/testdata/tests.js";
import { expect } from "chai";
import { FaultList } from "../../../../core/config/fault.ts";
import { ruleScope } from "../../../../core/policy/cel/scope.ts";
import { recordShape, shapes } from "../../../../core/policy/cel/syntax.ts";
import { readSource } from "../../../../core/policy/pack.ts";
import type { Rule } from "../../../../core/policy/rule.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";
import { makeAction } from "../../../support/action.ts";
import { CelComparison } from "../../../support/cel-oracle/comparison.ts";
import { ExpressionGenerator } from "../../../support/cel-oracle/generator.ts";
import { samplePack, scopeOf } from "../../../support/expression.ts";
import { optionsFor } from "../../../support/policy-pack.ts";
import { roundsOf } from "../../../support/rounds.ts";

/** The conditions of a rule, and the expressions in the messages of its file. */
function conditionsOf(rule: Rule): readonly string[] {
  const conditions = [rule.when, rule.unless, ...rule.exceptions.map(({ when }) => when)];
  return conditions.flatMap((condition) => (condition === undefined ? [] : [condition.text]));
}

async function messagesOf(folder: string, files: readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return texts.flatMap((text) => Array.from(text.matchAll(/\{\{(.*?)\}\}/gs), ([, inner = ""]) => inner.trim()));
}

interface ConformanceCase {
  readonly name: string;
  readonly expr: string;
}

/** The cases of the suite that need no variables, by their section. */
function casesOf(suite: SerializedIncrementalTestSuite, path: string): readonly ConformanceCase[] {
  const own = (suite.tests ?? []).flatMap(({ original: { name, expr, bindings } }) =>
    bindings === undefined ? [{ name: `${path}/${name ?? expr}`, expr }] : [],
  );
  return [...own, ...(suite.suites ?? []).flatMap((inner) => casesOf(inner, `${path}/${inner.name}`))];
}

describe("a compiled expression and the planner of the library", () => {
  const action = makeAction({ arguments: {} });

  for (const name of ["baseline", "session-watch", "shell", "git", "sql", "egress", "secrets"]) {
    it(`agree on every expression of ${name} and every action of its tests`, async () => {
      const folder = join(repositoryRoot, "policy-packs", name);
      const { extension } = await optionsFor(folder);
      const source = await readSource(extension, "2026-01-01T00:00:00.000Z", new FaultList(""));
      if (source === undefined) throw new Error("expected a pack");
      const { rules, tests, manifest, data } = source;
      const files = Array.from(new Set(rules.map(({ place }) => place.file)));
      const messages = await messagesOf(folder, files);
      const expressions = new Set([...rules.flatMap(conditionsOf), ...messages]);
      const names = Object.fromEntries(Object.keys(data).map((each) => [each, shapes.json]));
      const comparison = new CelComparison(ruleScope(["output"], manifest.settings.shape, recordShape(names)));
      let compared = 0;
      for (const text of expressions) {
        const compare = comparison.prepare(text);
        if (compare === undefined) throw new Error(`expected an expression, got ${text}`);
        for (const { envelope, settings } of tests) {
          const { compiled, oracle } = compare(envelope, { settings: manifest.settings.merge(settings), data });
          expect(compiled, text).to.deep.equal(oracle);
          compared++;
        }
      }
      expect(compared).to.be.above(100);
    });
  }

  it("agree on every case of the CEL conformance suite that a pack could write", () => {
    const comparison = new CelComparison(scopeOf(["input"]));
    const cases = casesOf(conformance, "");
    let compared = 0;
    for (const { name, expr } of cases) {
      const result = comparison.prepare(expr)?.(action, samplePack);
      if (result === undefined) continue;
      expect(result.compiled, `${name}: ${expr}`).to.deep.equal(result.oracle);
      compared++;
    }
    expect(compared).to.be.above(600);
  });

  it("agree on random expressions over random arguments, in value, error and price, also where the budget ends", () => {
    const rounds = roundsOf(10_000, 100_000);
    const inputs = 5;
    const comparison = new CelComparison(scopeOf(["input"]));
    const counts = { value: 0, error: 0, spent: 0 };
    for (let seed = 0; counts.value + counts.error + counts.spent < rounds; seed++) {
      const generator = new ExpressionGenerator(seed);
      const text = generator.expression();
      const compare = comparison.prepare(text);
      if (compare === undefined) continue;
      for (let input = 0; input < inputs; input++) {
        const args = generator.args();
        const { compiled, oracle } = compare(makeAction({ arguments: args }), samplePack, generator.units());
        if (compiled.result !== oracle.result || compiled.units !== oracle.units)
          expect(compiled, `${seed}: ${text} of ${JSON.stringify(args)}`).to.deep.equal(oracle);
        const { result } = compiled;
        counts[result === "error" || result === "spent" ? result : "value"]++;
      }
    }
    for (const kind of ["value", "error", "spent"] as const) expect(counts[kind], kind).to.be.above(rounds / 50);
  });
});
