import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type CompiledPack, compilePack } from "../../../core/policy/pack.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { makeAction } from "../../support/action.ts";
import { hostileTexts, hostileTextsFor } from "../../support/hostile-text.ts";
import { optionsFor } from "../../support/policy-pack.ts";

const folder = join(repositoryRoot, "policy-packs/baseline");

describe("policy-packs/baseline", () => {
  let compiled: CompiledPack;
  before(async () => {
    compiled = await compilePack(await optionsFor(folder));
  });

  it("passes its own tests", async () => {
    const results = await compiled.test();
    expect(results.length).to.be.above(70);
    expect(results.flatMap((result) => result.failures.map((failure) => `${result.name}: ${failure}`))).to.deep.equal(
      [],
    );
  });

  it("says of every rule that holds something back what to do, and what it rests on", () => {
    for (const rule of compiled.pack.rules) {
      expect(rule.references, rule.id).not.to.have.length(0);
      if (rule.decision !== "allow" && rule.id !== "baseline.hidden-tool")
        expect(rule.remediation, rule.id).to.be.a("string");
    }
  });

  it("allows a read that names a thousand files", async () => {
    const files = Array.from({ length: 1_000 }, (_, index) => `src/part-${index}.ts`);
    const verdict = await compiled.pack.policy.evaluate(makeAction({ capability: "read", arguments: { files } }));
    expect(verdict).to.include({ decision: "allow" }).and.not.to.have.property("error");
  });

  it("reads 64 kB of whatever its patterns speak of within its work units [S27]", () => {
    const rules = readFileSync(join(folder, "rules/path.yaml"), "utf8");
    const own = [...rules.matchAll(/matches\(\s*"((?:\\.|[^"\\])*)"/g)].map(([, pattern = ""]) => pattern);
    expect(own.length).to.be.above(3);
    const texts = [...hostileTexts().values(), ...own.flatMap((source) => hostileTextsFor({ source }))];
    for (const text of texts) {
      for (const args of [{ path: text }, { content: text }, { path: text.slice(0, 7_990) }]) {
        const action = makeAction({ capability: "execute", arguments: args });
        expect(compiled.pack.policy.evaluate(action), text.slice(0, 24)).not.to.have.property("error");
      }
    }
  });

  const hostile: readonly [name: string, unit: string][] = [
    ["slashes", "/"],
    ["names", "a/"],
    ["dots", "./"],
    ["escapes", "%2525"],
    ["near misses", "/.env.locall"],
    ["other alphabets", "é日"],
    ["lines", "a/b\n"],
  ];
  for (const [name, unit] of hostile) {
    for (const key of ["path", "content"]) {
      it(`answers within its work units, without an error, for 64 kB and more of ${name} in \`${key}\``, async () => {
        for (const length of [4_000, 7_990, 65_536, 1_000_000]) {
          const args = { [key]: unit.repeat(length / unit.length) };
          const verdict = await compiled.pack.policy.evaluate(makeAction({ capability: "execute", arguments: args }));
          expect(verdict).to.include({ decision: "review" }).and.not.to.have.property("error");
        }
      });
    }
  }
});
