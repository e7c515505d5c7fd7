import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { loadPack, type PackOptions, refuseDuplicatePacks } from "../../../core/policy/pack.ts";
import { acceptUnverified, VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { makeAction } from "../../support/action.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";
import { rejection } from "../../support/ledger-world.ts";
import { faultsOf, manifest, optionsFor, type PackFiles, PackFolders, packOf } from "../../support/policy-pack.ts";

const rule = "  - { id: sample.a, title: A, decision: allow, match: { tool: a } }";

describe("loadPack(options)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  it("says what it loaded", async () => {
    const more = "sequence: 7\nissued_at: 2025-12-01T00:00:00+01:00\nexpires_at: 2026-12-01T00:00:00Z\n";
    const pack = await folders.load(packOf(rule, more));
    expect(pack).to.include({ title: "Sample", namespace: "sample", ruleCount: 1, sequence: 7 });
    expect(pack).to.include({ issuedAt: "2025-11-30T23:00:00.000Z", expiresAt: "2026-12-01T00:00:00.000Z" });
    expect(pack.ref).to.include({ kind: "pack", name: "sample", version: "1.2.3", signer: null });
    expect(pack.ref.digest).to.match(/^sha256:[0-9a-f]{64}$/);
    expect(pack.rules[0]).to.include({ id: "sample.a", decision: "allow", severity: "info", risk: 0 });
  });

  it("runs the own tests of the same bytes once", async () => {
    const expecting = (decision: string): string =>
      `cases: [{ name: a, envelope: { tool: a }, expect: { decision: ${decision} } }]`;
    const options = await optionsFor(await folders.write({ ...packOf(rule), "tests/a.yaml": expecting("allow") }));
    await loadPack(options);
    const files = new Map(VerifiedExtension.open(options.extension)).set(
      "tests/a.yaml",
      Buffer.from(expecting("block")),
    );
    const failing = (digest: string): PackOptions => ({
      ...options,
      extension: acceptUnverified({ kind: "pack", files, digest, signature: undefined }, null),
    });
    await loadPack(failing(options.extension.digest));
    const other = contentDigest("other bytes");
    expect((await rejection(loadPack(failing(other)))).message).to.include("expected block, got allow");
    // What failed is no better the second time.
    expect((await rejection(loadPack(failing(other)))).message).to.include("expected block, got allow");
  });

  const rows: readonly [name: string, files: PackFiles, faults: readonly string[]][] = [
    [
      "bytes that are no text",
      { ...packOf(rule), "rules/a.yaml": Buffer.from([0x72, 0xff]) },
      ["rules/a.yaml:1:1: expected UTF-8, got invalid bytes"],
    ],
    [
      "a rule file nobody reads",
      { ...packOf(rule), "rules/b.yml": "rules: []" },
      ["rules/b.yml:1:1: expected a file named by rules/*.yaml; this one would be ignored"],
    ],
    [
      "data that is no JSON",
      { ...packOf(rule), "data/names.json": "{,}" },
      ["data/names.json:1:1: malformed JSON: unexpected character at offset 1"],
    ],
    [
      "a file beyond a megabyte",
      { ...packOf(rule), "README.md": Buffer.alloc(1_048_577) },
      ["README.md: expected at most 1048576 bytes, got 1048577"],
    ],
    [
      "a test that fails",
      {
        ...packOf(rule),
        "tests/a.yaml":
          "cases:\n  - name: a is blocked\n    envelope: { tool: a }\n    expect: { decision: block, rules: [sample.b], errors: 1 }",
      },
      [
        "tests/a.yaml:2:5: test `a is blocked`: expected block, got allow",
        "tests/a.yaml:2:5: test `a is blocked`: expected rule `sample.b`, got `sample.a`",
        "tests/a.yaml:2:5: test `a is blocked`: expected an error, got none",
      ],
    ],
    [
      "a test that expects another number of reviewers",
      {
        ...packOf("  - { id: sample.a, title: A, decision: review, approvals: { required: 2 } }"),
        "tests/a.yaml":
          "cases:\n  - { name: two, expect: { decision: review, approvals: 2 } }\n  - { name: three, expect: { decision: review, approvals: 3 } }",
      },
      ["tests/a.yaml:3:5: test `three`: expected 3 approvals, got 2"],
    ],
    [
      "a test that expects reviewers of what is not reviewed",
      {
        ...packOf(rule),
        "tests/a.yaml": "cases:\n  - { name: a, envelope: { tool: a }, expect: { decision: allow, approvals: 1 } }",
      },
      ["tests/a.yaml:2:77: expected `approvals` only with the decision review"],
    ],
    [
      "a test without an expectation",
      { ...packOf(rule), "tests/a.yaml": "cases:\n  - { name: a, envelope: { tol: a } }" },
      [
        "tests/a.yaml:2:5: cases[0].expect: expected this key, got nothing",
        "tests/a.yaml:2:28: cases[0].envelope.tol: unknown key, did you mean `tool`?",
      ],
    ],
    [
      "a manifest without a namespace",
      { ...packOf(rule), "pack.yaml": manifest("").replace(/namespace: .*\n/, "") },
      ["pack.yaml:1:1: namespace: expected this key, got nothing"],
    ],
  ];
  for (const [name, files, expected] of rows) {
    it(`refuses ${name} and says where`, async () => {
      expect(await faultsOf(folders, files)).to.have.members(expected);
    });
  }
  it("names every fault of a pack at once, in order", async () => {
    const files = packOf("  - { id: a.b, title: A, decision: alow }\n  - { id: sample.b, title: B }", "sequence: -1");
    expect(await faultsOf(folders, files)).to.deep.equal([
      "pack.yaml:5:11: sequence: expected an integer from 0 to 9007199254740991, got the number `-1`",
      "rules/a.yaml:2:11: expected `id` to begin with the pack's namespace `sample.`, got `a.b`",
      "rules/a.yaml:2:36: rules[0].decision: expected `allow`, `review` or `block`, got `alow` (did you mean `allow`?)",
      "rules/a.yaml:3:5: rules[1].decision: expected this key, got nothing",
    ]);
  });

  it("refuses fifty thousand keys in linear time", async () => {
    const keys = (count: number): string => Array.from({ length: count }, (_, index) => `k${index}: 1`).join("\n");
    const faults = (text: string) => faultsOf(folders, { ...packOf(rule), "rules/b.yaml": text });
    expect(await faults(keys(50_000))).to.have.length(1);
    expect(await growthOf(keys, faults, 12_500)).to.be.below(maxGrowth);
  });

  it("refuses a link inside the folder, and follows the one that leads to it", async () => {
    const folder = await folders.write(packOf(rule));
    const outside = await folders.write({ "secret.yaml": "rules: []" });
    await symlink(folder, join(outside, "current"));
    expect((await loadPack(await optionsFor(join(outside, "current")))).ruleCount).to.equal(1);
    await symlink(join(outside, "secret.yaml"), join(folder, "rules", "b.yaml"));
    const error = await rejection(optionsFor(folder));
    expect(error.message).to.contain("rules/b.yaml: expected a file or a folder, got a symbolic link");
  });

  it("refuses a folder that is not there", async () => {
    const error = await rejection(optionsFor("/nowhere/at/all"));
    expect(error).to.include({ code: "EXTENSION_INVALID", detail: "`/nowhere/at/all` cannot be read: no such folder" });
  });

  it("digests every file but the signature", async () => {
    const digest = async (files: PackFiles): Promise<string> => (await folders.load(files)).ref.digest;
    const files = packOf(rule);
    const plain = await digest(files);
    expect(await digest(files)).to.equal(plain);
    expect(await digest({ ...files, "pack.sigstore.json": "{}" })).to.equal(plain);
    expect(await digest({ ...files, "README.md": "x" })).not.to.equal(plain);
    expect(await digest({ ...files, "rules/b.yaml": "rules: []" })).not.to.equal(plain);
    expect(await digest(packOf(`${rule} `))).not.to.equal(plain);
  });

  describe("when an operator tries out some rules", () => {
    const files: PackFiles = {
      ...packOf(
        "  - { id: sample.a, title: A, decision: block, match: { tool: a* } }\n  - { id: sample.b, title: B, decision: review, match: { tool: '*b' } }",
      ),
      "tests/a.yaml": "cases: [{ name: a, envelope: { tool: ab }, expect: { decision: block, rules: [sample.b] } }]",
    };

    it("records what they say, counts the others, and has the pack's own tests run with all in force", async () => {
      const pack = await folders.load(files, {}, "enforce", ["sample.a"]);
      const verdict = await pack.policy.evaluate(makeAction({ tool: "ab" }));
      expect(verdict.decision).to.equal("review");
      expect(verdict.findings.map(({ rule: id, mode }) => [id, mode])).to.deep.equal([
        ["sample.b", "enforce"],
        ["sample.a", "shadow"],
      ]);
      expect(pack.rules.map(({ mode }) => mode)).to.deep.equal(["shadow", "enforce"]);
      const all = await (await folders.load(files)).policy.evaluate(makeAction({ tool: "ab" }));
      expect(all.decision).to.equal("block");
    });

    it("takes globs", async () => {
      const pack = await folders.load(files, {}, "enforce", ["*.b"]);
      expect(pack.rules.map(({ mode }) => mode)).to.deep.equal(["enforce", "shadow"]);
    });

    it("refuses one that no rule fits, and all of them", async () => {
      const refused = async (globs: readonly string[]) =>
        (await rejection(folders.load(files, {}, "enforce", globs))).message.split("\n").slice(1);
      expect(await refused(["sample.c", "other.*"])).to.deep.equal([
        "pack.yaml:1:1: `shadow_rules`: expected a rule of this pack, got `sample.c`; did you mean `sample.a`?",
        "pack.yaml:1:1: `shadow_rules`: expected a rule of this pack, got `other.*`",
      ]);
      expect(await refused(["sample.*"])).to.deep.equal([
        "pack.yaml:1:1: `shadow_rules`: expected to leave a rule in force; `mode: shadow` tries out the whole pack",
      ]);
    });
  });

  describe("when the pack has settings", () => {
    const schema =
      "{ type: object, additionalProperties: false, properties: { limit: { type: integer }, name: { type: string, pattern: '^[a-z]+$' } } }";
    const files: PackFiles = {
      ...packOf(
        "  - { id: sample.a, title: A, decision: block, when: args.n > settings.limit }\n  - { id: sample.b, title: B, decision: allow, match: { tool: '*' } }",
        `settings: { schema: ${schema}, defaults: { limit: 3, name: ada } }`,
      ),
      "tests/a.yaml":
        "cases:\n  - { name: default, envelope: { arguments: { n: 4 } }, expect: { decision: block } }\n" +
        "  - { name: raised, settings: { limit: 5 }, envelope: { arguments: { n: 4 } }, expect: { decision: allow } }",
    };

    it("judges with the operator's values, and tests with its own", async () => {
      const pack = await folders.load(files, { limit: 9 });
      expect((await pack.policy.evaluate(makeAction({ arguments: { n: 5 } }))).decision).to.equal("allow");
      expect((await pack.policy.evaluate(makeAction({ arguments: { n: 10 } }))).decision).to.equal("block");
    });

    it("refuses values the schema does not know", async () => {
      expect(await faultsOf(folders, files, { limits: 4 })).to.deep.equal([
        "pack.yaml:1:1: settings from the configuration: unknown setting `limits`",
      ]);
      expect(await faultsOf(folders, files, { limit: "4", name: "A" })).to.deep.equal([
        'pack.yaml:1:1: settings from the configuration: `settings/limit` must be integer; `settings/name` must match pattern "^[a-z]+$"',
      ]);
    });

    it("refuses a pattern only a backtracking engine would run", async () => {
      const lookahead = { ...files, "pack.yaml": String(files["pack.yaml"]).replace("^[a-z]+$", "^(?!a).*$") };
      expect((await faultsOf(folders, lookahead))[0]).to.contain("not a usable schema: error parsing regexp");
    });
  });
});

describe("refuseTwins(packs)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  it("refuses two packs that share a namespace", async () => {
    const first = await folders.write(packOf(rule));
    const second = await folders.write({
      ...packOf(rule),
      "pack.yaml": manifest().replace("name: sample", "name: twin"),
    });
    const packs = await Promise.all([first, second].map(async (path) => loadPack(await optionsFor(path))));
    expect(() => refuseDuplicatePacks(packs))
      .to.throw(GatewayError, "`twin`: expected a name and a namespace of its own, got those of `sample`")
      .with.property("code", "PACK_INVALID");
    refuseDuplicatePacks(packs.slice(1));
  });
});
