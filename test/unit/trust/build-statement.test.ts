import { expect } from "chai";
import { contentDigest, sha256Hex } from "../../../core/action/canonical-json.ts";
import { buildFiles, readBuild } from "../../../core/trust/build.ts";
import type { ExtensionFolder } from "../../../core/trust/folder.ts";
import { TrustRefusalError } from "../../../core/trust/refusal.ts";

const [module, rules] = [Buffer.from("module"), Buffer.from("rules")];
const slsa = "https://slsa.dev/provenance/v1";
const subjectOf = (...files: readonly Buffer[]): object[] =>
  files.map((bytes) => ({ name: "dist/x", digest: { sha512: "0", sha256: sha256Hex(bytes) } }));
const predicate = {
  buildDefinition: { buildType: "x" },
  runDetails: { builder: { id: "https://ci.example/builder" } },
};
const good = { _type: "https://in-toto.io/Statement/v1", subject: subjectOf(module), predicateType: slsa, predicate };

function read(build: unknown, files: Readonly<Record<string, Buffer>> = { "plugin.wasm": module }): unknown {
  const bytes = Buffer.from(typeof build === "string" ? build : JSON.stringify(build ?? null));
  const all = new Map(Object.entries(build === undefined ? files : { ...files, [buildFiles.statement]: bytes }));
  const fileDigests = new Map(Array.from(all, ([name, content]) => [name, sha256Hex(content)]));
  const folder: ExtensionFolder = {
    path: "",
    kind: "plugin",
    files: all,
    fileDigests,
    digest: "",
    signature: undefined,
  };
  try {
    return readBuild(folder)?.statement ?? null;
  } catch (error) {
    if (!(error instanceof TrustRefusalError)) throw error;
    return error.check;
  }
}

describe("readBuild(folder)", () => {
  it("tells the digest, the kind and the builder", () => {
    expect(read(undefined)).to.equal(null);
    expect(read(good)).to.deep.equal({
      digest: contentDigest(Buffer.from(JSON.stringify(good))),
      predicateType: slsa,
      builder: "https://ci.example/builder",
      provenBy: null,
    });
  });

  it("takes another predicate, and one that names no builder", () => {
    expect(read({ ...good, predicateType: "https://a.example/v1" })).to.include({ builder: null });
    expect(read({ ...good, predicate: {} })).to.include({ builder: null });
  });

  it("is about every module, or about a file where there is no module", () => {
    expect(read({ ...good, subject: subjectOf(rules) })).to.equal("build_of_another");
    expect(read(good, { "a.wasm": module, "b.wasm": rules })).to.equal("build_of_another");
    expect(read({ ...good, subject: subjectOf(module, rules) }, { "a.wasm": module, "b.wasm": rules })).to.be.an(
      "object",
    );
    expect(read({ ...good, subject: subjectOf(rules) }, { "rules.yaml": rules })).to.be.an("object");
    expect(read(good, { "rules.yaml": rules })).to.equal("build_of_another");
    expect(read({ ...good, subject: [] })).to.equal("build_of_another");
  });

  const malformed: Readonly<Record<string, unknown>> = {
    "no JSON": "{",
    "a member given twice": JSON.stringify(good).replace("{", '{"predicateType":"x",'),
    "another type": { ...good, _type: "https://in-toto.io/Statement/v0.1" },
    "no subjects": { ...good, subject: undefined },
    "no predicate type": { ...good, predicateType: undefined },
    "a predicate type with a line break": { ...good, predicateType: "a\nb" },
    "an endless predicate type": { ...good, predicateType: "a".repeat(1_025) },
    "a builder with a backtick": { ...good, predicate: { runDetails: { builder: { id: "`" } } } },
    "a builder that is no text": { ...good, predicate: { runDetails: { builder: { id: 1 } } } },
    "a bomb": `${"[".repeat(100_000)}`,
  };
  for (const [what, build] of Object.entries(malformed)) {
    it(`refuses ${what}`, () => {
      expect(read(build)).to.equal("build_malformed");
    });
  }
});
