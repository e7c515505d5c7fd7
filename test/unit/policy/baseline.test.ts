import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type CompiledPack, compilePack } from "../../../core/policy/pack.ts";
import { makeAction } from "../../support/action.ts";
import { optionsFor } from "../../support/policy-pack.ts";

const folder = fileURLToPath(new URL("../../../../../policy-packs/baseline", import.meta.url));

describe("policy-packs/baseline", () => {
  let compiled: CompiledPack;
  before(async () => {
    compiled = await compilePack(optionsFor(folder));
  });

  it("passes its own tests", async () => {
    const results = await compiled.test();
    expect(results.length).to.be.above(70);
    expect(results.flatMap((result) => result.failures.map((failure) => `${result.name}: ${failure}`))).to.deep.equal(
      [],
    );
  });

  it("tries every one of its rules", async () => {
    const tried = new Set<string>();
    for (const capability of [
      "read",
      "generate",
      "network",
      "write",
      "execute",
      "delete",
      "deploy",
      "approve",
    ] as const) {
      const texts = ["/home/a/.env", "cat id_rsa", "../a"];
      for (const phase of ["list", "input"] as const) {
        for (const finding of (
          await compiled.pack.policy.evaluate(makeAction({ capability, phase, arguments: { texts } }))
        ).findings) {
          tried.add(finding.rule);
        }
      }
    }
    const guarded = await compilePack(optionsFor(folder, { protected_paths: ["/etc"] }));
    const verdict = await guarded.pack.policy.evaluate(makeAction({ arguments: { path: "/etc/hosts" } }));
    for (const finding of verdict.findings) tried.add(finding.rule);
    expect(compiled.pack.rules.map((rule) => rule.id).filter((id) => !tried.has(id))).to.deep.equal([]);
  });

  it("says of every rule that holds something back what to do, and what it rests on", () => {
    for (const rule of compiled.pack.rules) {
      expect(rule.references, rule.id).not.to.have.length(0);
      if (rule.decision !== "allow" && rule.id !== "baseline.hidden-tool")
        expect(rule.remediation, rule.id).to.be.a("string");
    }
  });

  for (const length of [4_096, 16_384, 65_536, 1_000_000]) {
    for (const [name, unit] of [
      ["one line", "a/"],
      ["lines", "a/b\n"],
      ["other alphabets", "é日"],
    ] as const) {
      it(`judges a write of ${length} characters of ${name} as any other`, async () => {
        const content = unit.repeat(length).slice(0, length);
        const started = performance.now();
        const verdict = await compiled.pack.policy.evaluate(
          makeAction({ capability: "write", arguments: { path: "/srv/a", content } }),
        );
        expect(performance.now() - started).to.be.below(100);
        expect(verdict).to.include({ decision: "review" }).and.not.to.have.property("error");
      });
    }
  }
});
