import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import { type CompiledPack, compilePack } from "../../../core/policy/pack.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { makeAction } from "../../support/action.ts";
import { hostileTexts, hostileTextsFor } from "../../support/hostile-text.ts";
import { optionsFor } from "../../support/policy-pack.ts";

const folder = join(repositoryRoot, "policy-packs/session-watch");

describe("policy-packs/session-watch", () => {
  let compiled: CompiledPack;
  before(async () => {
    compiled = await compilePack(await optionsFor(folder));
  });

  it("passes its own tests", async () => {
    const results = await compiled.test();
    const failures = results.flatMap(({ name, failures: each }) => each.map((failure) => `${name}: ${failure}`));
    expect(failures).to.deep.equal([]);
  });

  it("has a test that expects each of its rules", () => {
    const tests = textsIn("tests");
    const expected = new Set([...tests.matchAll(/\brules: \[([a-z.-]+)\]/g)].map(([, id]) => id));
    expect(compiled.pack.rules.map(({ id }) => id).filter((id) => !expected.has(id))).to.deep.equal([]);
  });

  it("says of every rule that holds something back what to do, and what it rests on", () => {
    for (const { id, decision, references, remediation } of compiled.pack.rules) {
      expect(references.join(" "), id).to.match(/\bOWASP-ASI\d\d\b/);
      if (decision !== "allow") expect(remediation, id).to.be.a("string");
    }
  });

  const text = (size: number, unit: string): string => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);
  const answers: readonly (readonly [name: string, output: Json])[] = [
    ["a megabyte of prose", { text: text(1_000_000, "The secret of a good password is that nobody knows it. ") }],
    ["a megabyte of another alphabet", { text: text(1_000_000, "Пароль: не token, 秘密 не secret. ") }],
    ["a hundred thousand numbers", { list: Array.from({ length: 100_000 }, (_, index) => index) }],
    ["twenty thousand rows", Array.from({ length: 20_000 }, (_, id) => ({ id: `row ${id}`, token: "" }))],
    ["keywords alone", { text: text(64_000, "AKIA ghp_ xox eyJ PRIVATE KEY----- password=") }],
    ["keywords alone, in pieces", Array.from({ length: 10_000 }, () => "AKIA ghp_ password=1a1")],
  ];
  for (const [name, output] of answers) {
    it(`finds no fault, within its work units, with an answer of ${name}`, () => {
      const action = withOutput(makeAction({ capability: "read" }), output);
      const judge = () => compiled.pack.policy.evaluate(action);
      expect(judge()).to.include({ decision: "abstain" });
      expect(judge()).to.deep.include({ findings: [] });
    });
  }

  it("finds a credential wherever it stands in the first 16,000 characters of an answer, and none beyond", async () => {
    for (const [before, findings] of [
      [0, 1],
      [15_800, 1],
      [16_000, 0],
    ] as const) {
      const output = { content: [{ type: "text", text: `${text(before, "just prose ")} AKIAIOSFODNN7EXAMPLE` }] };
      const verdict = await compiled.pack.policy.evaluate(withOutput(makeAction({ capability: "read" }), output));
      expect(verdict.findings.length, String(before)).to.equal(findings);
    }
  });

  it("reads 64 kB of whatever its patterns speak of within its work units [S27]", () => {
    const own = [...textsIn("rules").matchAll(/matches\(\s*"((?:\\.|[^"\\])*)"/g)].map(([, pattern = ""]) => pattern);
    expect(own.length).to.be.above(5);
    const texts = [...hostileTexts().values(), ...own.flatMap((source) => hostileTextsFor({ source }))];
    const taints = [{ name: "untrusted", target: "web", tool: "fetch", action: "a", at: 0 }];
    const state = { risk: 0, actions: 1, reviews: 0, tools: 1, new_tool: false, taints };
    const facts = { hosts: ["a.example"], paths: [], more: false, effect: "read" as const };
    for (const each of texts) {
      for (const content of [each, each.slice(0, 7_990)]) {
        const asked = makeAction({ capability: "read", arguments: { url: content }, session_state: state, facts });
        for (const action of [asked, withOutput(makeAction({ capability: "read" }), { content })]) {
          expect(compiled.pack.policy.evaluate(action), each.slice(0, 24)).not.to.have.property("error");
        }
      }
    }
  });
});

function textsIn(kind: "rules" | "tests"): string {
  const files = readdirSync(join(folder, kind)).sort();
  return files.map((file) => readFileSync(join(folder, kind, file), "utf8")).join("\n");
}
