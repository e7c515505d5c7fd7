import { fileURLToPath } from "node:url";
import { expect } from "chai";
import fc from "fast-check";
import { strictest } from "../../../core/action/decision.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { ExplainedExpression, PolicyExplanation } from "../../../core/action/explanation.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { FaultList } from "../../../core/config/fault.ts";
import { type LoadedPack, loadPack, readSource } from "../../../core/policy/pack.ts";
import { makeAction } from "../../support/action.ts";
import { optionsFor, PackFolders, packOf } from "../../support/policy-pack.ts";
import { roundsOf } from "../../support/rounds.ts";

const packs = fileURLToPath(new URL("../../../../policy-packs/", import.meta.url));

/** What the rules of a pack come to as they are explained, put together as a verdict is. */
function verdictOf({ rules }: PolicyExplanation): Verdict["decision"] {
  return rules
    .filter(({ mode }) => mode === "enforce")
    .map(({ outcome, decision }) => (outcome === "failed" ? "block" : decision))
    .reduce<Verdict["decision"]>((all, each) => (all === "abstain" ? each : strictest(all, each)), "abstain");
}

/** What lifts a rule is recorded as a finding that never counts. */
function rulesOf({ findings }: Verdict, pack: LoadedPack): readonly string[] {
  const decided = new Map(pack.rules.map(({ id, decision }) => [id, decision]));
  return findings
    .filter(({ rule, mode, decision }) => !(mode === "shadow" && decision === "allow" && decided.get(rule) !== "allow"))
    .map(({ rule }) => rule);
}

async function explain(pack: LoadedPack, action: ActionEnvelope): Promise<PolicyExplanation> {
  const { explainer } = pack.policy;
  if (explainer === undefined) throw new Error("expected rules that can be read");
  return explainer.explain(action, action);
}

async function expectAgreement(pack: LoadedPack, action: ActionEnvelope): Promise<void> {
  const verdict = await pack.policy.evaluate(action);
  const explained = await explain(pack, action);
  const told = explained.rules.map(({ rule }) => rule);
  expect(told.toSorted()).to.deep.equal(rulesOf(verdict, pack).toSorted());
  expect(verdictOf(explained)).to.equal(verdict.decision);
  expect(explained.rules.some(({ outcome, mode }) => outcome === "failed" && mode === "enforce")).to.equal(
    verdict.error !== undefined,
  );
}

describe("PackBook.explain(action, shown)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  for (const name of ["baseline", "session-watch"]) {
    it(`agrees with the policy on every case of the tests of ${name}`, async () => {
      const options = await optionsFor(`${packs}${name}`);
      const source = await readSource(options.extension, "2026-01-01T00:00:00.000Z", new FaultList(""));
      const tests = source?.tests ?? [];
      expect(tests.length).to.be.above(20);
      const loaded = new Map<string, LoadedPack>();
      for (const { envelope, settings } of tests) {
        const key = JSON.stringify(settings);
        const pack = loaded.get(key) ?? (await loadPack({ ...options, settings }));
        loaded.set(key, pack);
        await expectAgreement(pack, envelope);
      }
    });
  }

  describe("of rules and arguments at random", () => {
    const atom = fc.constantFrom(
      "args.a",
      "args.a == 1.0",
      'args.b == "x"',
      "has(args.c)",
      "args.c.d > 2.0",
      'args.list.exists(i, i == "x")',
      'args.list.all(i, i.startsWith("x"))',
      "args.list[0] == args.b",
      '"x" in args.list',
      "size(args.b) > 1",
      'args.b.matches("^x+$")',
      "1 / 0 == 1",
    );
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        atom,
        tie("expression").map((a) => `!(${a})`),
        fc.tuple(tie("expression"), tie("expression")).map(([a, b]) => `(${a}) && (${b})`),
        fc.tuple(tie("expression"), tie("expression")).map(([a, b]) => `(${a}) || (${b})`),
        fc
          .tuple(tie("expression"), tie("expression"), tie("expression"))
          .map(([a, b, c]) => `(${a}) ? (${b}) : (${c})`),
      ),
    }));
    const args: fc.Arbitrary<Json> = fc.record(
      {
        a: fc.constantFrom<Json>(true, false, 1, "x"),
        b: fc.constantFrom<Json>("x", "xx", 1, null),
        c: fc.constantFrom<Json>({ d: 3 }, { d: 1 }, {}),
        list: fc.array(fc.constantFrom<Json>("x", "y", 1), { maxLength: 3 }),
      },
      { requiredKeys: [] },
    );

    it("agrees with the policy, and no part that was asked contradicts the whole", async () => {
      await fc.assert(
        fc.asyncProperty(expression, expression, args, async (when, unless, value) => {
          const rule = { id: "sample.a", title: "A", decision: "review", when, unless };
          const pack = await folders.load(packOf(`  - ${JSON.stringify(rule)}\n`));
          const action = makeAction({ arguments: value });
          await expectAgreement(pack, action);
          const { rules, near } = await explain(pack, action);
          const conditions = [...rules, ...near.map((each) => each.rule)].flatMap((each) => each.conditions);
          for (const condition of conditions) expectSound(condition.expression);
          await folders.remove();
        }),
        { numRuns: roundsOf(100, 2_000) },
      );
    });
  });

  /** `a && b` is false because an operand is, `a || b` true because one is, and what follows was not asked. */
  function expectSound({ text, outcome, parts }: ExplainedExpression): void {
    const outcomes = parts.map((each) => each.outcome);
    if (outcomes.includes("skipped") && !text.includes("?")) expect(outcomes).to.include(outcome);
    for (const part of parts) expectSound(part);
  }

  async function explainRules(rules: string, args: JsonObject, shown?: JsonObject | null): Promise<PolicyExplanation> {
    const pack = await folders.load(packOf(rules));
    const action = makeAction({ arguments: args });
    const seen = shown === undefined ? action : shown === null ? null : makeAction({ arguments: shown });
    const explained = pack.policy.explainer?.explain(action, seen);
    if (explained === undefined) throw new Error("expected rules that can be read");
    return explained;
  }

  describe("when parts of a condition decide it", () => {
    const rule = (when: string): string =>
      `  - { id: sample.a, title: A, decision: block, when: ${JSON.stringify(when)} }\n`;

    it("says which, and what it asked about", async () => {
      const when =
        'has(args.path) && (args.path.startsWith("/etc/") || args.path.lowerAscii() == "/ROOT") && args.n > 1.0';
      const { near } = await explainRules(rule(when), { path: "/tmp/x", n: 2 });
      expect(near[0]?.rule).to.include({ rule: "sample.a", outcome: "when", file: "rules/a.yaml", line: 2 });
      expect(near[0]?.rule.why).to.equal(
        '`when` is false: `args.path.startsWith("/etc/") || args.path.lowerAscii() == "/ROOT"` is false (' +
          '`args.path.startsWith("/etc/")` is false, `args.path.lowerAscii() == "/ROOT"` is false)',
      );
      const [whole] = near[0]?.rule.conditions ?? [];
      expect(whole?.expression.parts.map(({ outcome }) => outcome)).to.deep.equal(["true", "false", "skipped"]);
      const [, either] = whole?.expression.parts ?? [];
      const [starts, lower] = either?.parts ?? [];
      expect(starts?.parts).to.deep.equal([
        { text: "args.path", outcome: "value", value: '"/tmp/x"', parts: [], more: false },
      ]);
      expect(lower?.parts.map(({ text, value }) => [text, value])).to.deep.equal([
        ["args.path.lowerAscii()", '"/tmp/x"'],
      ]);
    });

    it("says which turn of a loop it was", async () => {
      const when = 'args.files.exists(file, file.path in ["/a", "/b"] && file.mode == "w")';
      const files = [
        { path: "/a", mode: "r" },
        { path: "/b", mode: "w" },
        { path: "/c", mode: "w" },
      ];
      const { rules } = await explainRules(rule(when), { files });
      const [range, turn] = rules[0]?.conditions[0]?.expression.parts ?? [];
      expect(range?.text).to.equal("args.files");
      expect(turn).to.include({ text: "file", value: '{path: "/b", mode: "w"}' });
      expect(turn?.parts[0]).to.include({ outcome: "true", text: 'file.path in ["/a", "/b"] && file.mode == "w"' });
      expect(turn?.parts[0]?.parts[0]?.parts).to.deep.equal([
        { text: "file.path", outcome: "value", value: '"/b"', parts: [], more: false },
      ]);
    });

    it("says what could not be evaluated, and that it blocks", async () => {
      const { rules } = await explainRules(rule("args.missing == 1.0"), { other: 1 });
      expect(rules[0]).to.include({ outcome: "failed" });
      expect(rules[0]?.why).to.match(/^`when` could not be evaluated: /);
    });
  });

  describe("when what an attacker sent is vast", () => {
    const deep = `${"(".repeat(30)}args.x == 1.0${")".repeat(30)}`;
    const long = Array.from({ length: 90 }, (_, at) => `args.x != ${at}.0`).join(" && ");

    it("tells so many parts and no more, and says so", async () => {
      const { near } = await explainRules(
        `  - { id: sample.a, title: A, decision: block, when: ${JSON.stringify(`${long} && ${deep}`)} }\n`,
        { x: -1 },
      );
      const [whole] = near[0]?.rule.conditions ?? [];
      if (whole === undefined) throw new Error("expected a condition");
      const expressions: ExplainedExpression[] = [];
      const collect = (each: ExplainedExpression): void => {
        expressions.push(each);
        each.parts.forEach(collect);
      };
      collect(whole.expression);
      expect(expressions).to.have.length.within(60, 66);
      expect(whole.expression.more).to.equal(true);
    });

    it("cuts values where all can see it, and shows what is hidden in them", async () => {
      const when = 'args.text.endsWith("!")';
      const rule = `  - { id: sample.a, title: A, decision: block, when: ${JSON.stringify(when)} }\n`;
      const { near } = await explainRules(rule, { text: `\u202e${"x".repeat(1_000_000)}` });
      const value = near[0]?.rule.conditions[0]?.expression.parts[0]?.value ?? "";
      expect(value).to.match(/^"\\u\{202e\}x+…$/);
      expect(value.length).to.be.below(300);
    });

    it("spends the work of one evaluation, and says what it could not ask", async () => {
      const rules = Array.from(
        { length: 40 },
        (_, at) =>
          `  - { id: sample.r${at}, title: A, decision: block, when: 'args.list.exists(i, args.list.exists(j, i == "${at}" && j == i))' }\n`,
      ).join("");
      const list = Array.from({ length: 300 }, () => "x");
      const { near } = await explainRules(rules, { list });
      expect(near).to.have.length(3);
      const pack = await folders.load(packOf(rules));
      expect((await pack.policy.evaluate(makeAction({ arguments: { list } }))).error).to.include("spent");
    });
  });

  describe("when something may not be seen", () => {
    const when = 'args.token.startsWith("AKIA") && args.token.lowerAscii() != "" && args.path.startsWith("/")';
    const rule = `  - { id: sample.a, title: A, decision: block, when: '${when}' }\n`;
    const secret = { token: "AKIA1234567890", path: "/srv/plans" };

    it("tells what is the same without it, and of the rest only whether it is true", async () => {
      const told = await explainRules(rule, secret, { ...secret, token: "[redacted]" });
      expect(JSON.stringify(told).toUpperCase()).to.not.include("AKIA1");
      expect(JSON.stringify(told)).to.include('"[redacted]"').and.include("/srv/plans");
      expect(told.rules[0]?.conditions[0]?.expression.outcome).to.equal("true");
      expect(JSON.stringify(await explainRules(rule, secret))).to.include("AKIA1");
    });

    it("tells no value at all where nobody can say what is hidden", async () => {
      const told = await explainRules(rule, secret, null);
      expect(JSON.stringify(told)).to.not.include("AKIA1");
      expect(JSON.stringify(told)).to.not.include("/srv/plans");
    });
  });

  it("tells the nearest of the rules that did not decide, and how each differs", async () => {
    const rules = [
      "{ id: sample.far, title: A, decision: block, match: { tool: other, capability: deploy } }",
      "{ id: sample.other, title: A, decision: block, match: { tool: [write_*, delete] } }",
      `{ id: sample.half, title: A, decision: review, when: 'args.n > 1.0 && args.n > 5.0' }`,
      `{ id: sample.none, title: A, decision: block, when: 'args.n > 5.0 && args.n > 6.0' }`,
      `{ id: sample.lifted, title: A, decision: block, unless: 'args.n == 2.0' }`,
    ];
    const { near, rules: told } = await explainRules(rules.map((each) => `  - ${each}\n`).join(""), { n: 2 });
    expect(told).to.deep.equal([]);
    expect(near.map(({ rule }) => [rule.rule, rule.outcome])).to.deep.equal([
      ["sample.lifted", "unless"],
      ["sample.half", "when"],
      ["sample.none", "when"],
    ]);
    const [, other] = rules;
    const [only] = (await explainRules(`  - ${other}\n`, {})).near;
    expect(only?.rule.why).to.match(/^`tool` is `\w+`, expected `write_\*` or `delete`$/);
  });
});
