import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type CompiledPack, compilePack } from "../../../core/policy/pack.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { optionsFor } from "../../support/policy-pack.ts";

const root = join(repositoryRoot, "policy-packs");

describe("the policy packs", () => {
  for (const name of ["baseline", "shell", "git", "sql", "egress", "secrets", "tool-integrity"]) {
    describe(name, () => {
      const folder = join(root, name);
      let compiled: CompiledPack;
      before(async () => {
        compiled = await compilePack(await optionsFor(folder));
      });

      it("passes its own tests", async () => {
        const results = await compiled.test();
        const failures = results.flatMap((each) => each.failures.map((failure) => `${each.name}: ${failure}`));
        expect(failures).to.deep.equal([]);
        expect(results.length).to.be.above(50);
      });

      it("has for each rule a case that it decides, and one that it nearly does", () => {
        const tests = readdirSync(join(folder, "tests")).map((file) =>
          readFileSync(join(folder, "tests", file), "utf8"),
        );
        const named = (member: string): ReadonlySet<string> => {
          const lists = tests.join("\n").matchAll(new RegExp(`\\b${member}: \\[([a-z., -]+)\\]`, "g"));
          return new Set([...lists].flatMap(([, ids = ""]) => ids.split(", ")));
        };
        const ids = compiled.pack.rules.map(({ id }) => id);
        expect(ids.filter((id) => !named("rules").has(id))).to.deep.equal([]);
        expect(ids.filter((id) => !named("not_rules").has(id))).to.deep.equal([]);
      });

      it("says of each rule what to do and what it rests on", () => {
        for (const { id, decision, references, remediation } of compiled.pack.rules) {
          expect(references.join(" "), id).to.match(/OWASP-(?:ASI|MCP|LLM)\d\d/);
          if (decision !== "allow" && id !== "baseline.hidden-tool") expect(remediation, id).to.be.a("string");
        }
      });
    });
  }
});
