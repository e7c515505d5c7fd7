import { expect } from "chai";
import { faultsOf, manifest, type PackFiles, PackFolders, packOf } from "../../support/policy-pack.ts";

const rule = "  - { id: sample.a, title: A, decision: allow, match: { tool: a } }";

describe("parseManifest(node, now)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  const rows: readonly [name: string, files: PackFiles, faults: readonly string[]][] = [
    ["no manifest", { "rules/a.yaml": "rules: []" }, ["pack.yaml:1:1: expected a manifest, got no such file"]],
    ["no rules", { "pack.yaml": manifest() }, ["pack.yaml:1:1: expected at least one rule, got none"]],
    [
      "another kind",
      { ...packOf(rule), "pack.yaml": manifest().replace("PolicyPack", "PolicyPact") },
      ["pack.yaml:2:7: kind: expected `PolicyPack`, got `PolicyPact` (did you mean `PolicyPack`?)"],
    ],
    [
      "a version that is none",
      { ...packOf(rule), "pack.yaml": manifest().replace("1.2.3", '"1.2"') },
      ["pack.yaml:3:36: metadata.version: expected a semantic version like `1.2.3`, got `1.2`"],
    ],
    [
      "a version that is a number, and would be none in quotes",
      { ...packOf(rule), "pack.yaml": manifest().replace("1.2.3", "1.0") },
      ["pack.yaml:3:36: metadata.version: expected a semantic version like `1.2.3`, got the number `1`"],
    ],
    [
      "a manifest key that is none",
      packOf(rule, "namespase: x"),
      ["pack.yaml:5:1: namespase: unknown key, did you mean `namespace`?"],
    ],
    [
      "an envelope of another version",
      packOf(rule, "compatibility: { envelope: 2 }"),
      ["pack.yaml:5:28: compatibility.envelope: expected an integer from 1 to 1, got the number `2`"],
    ],
    [
      "a pack past its time",
      packOf(rule, "expires_at: 2026-01-01T00:00:00Z"),
      ["pack.yaml:5:13: the pack expired at 2026-01-01T00:00:00.000Z"],
    ],
    [
      "a time without a zone",
      packOf(rule, "issued_at: 2026-01-01T00:00:00"),
      ["pack.yaml:5:12: issued_at: expected a time like `2026-12-31T00:00:00Z`, got `2026-01-01T00:00:00`"],
    ],
    [
      "a schema that lets anything in",
      packOf(rule, "settings: { schema: { type: object }, defaults: {} }"),
      ["pack.yaml:5:21: expected `schema` to have `type: object` and `additionalProperties: false`"],
    ],
    [
      "a schema with a remote reference",
      packOf(
        rule,
        "settings: { schema: { type: object, additionalProperties: false, properties: { a: { $ref: 'http://example.com/a.json' } } } }",
      ),
      ["pack.yaml:5:21: not a usable schema: can't resolve reference http://example.com/a.json from id #"],
    ],
    [
      "defaults against the schema",
      packOf(
        rule,
        "settings: { schema: { type: object, additionalProperties: false, properties: { a: { type: integer } } }, defaults: { a: x } }",
      ),
      ["pack.yaml:5:21: `settings/a` must be integer"],
    ],
  ];
  for (const [name, files, expected] of rows) {
    it(`refuses ${name} and says where`, async () => {
      expect(await faultsOf(folders, files)).to.have.members(expected);
    });
  }
});
