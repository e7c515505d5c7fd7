import { expect } from "chai";
import { stringify } from "yaml";
import { contentDigest } from "../../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../../core/action/error.ts";
import type { Json } from "../../../../core/action/json.ts";
import { readPlugin } from "../../../../core/policy/plugin-source.ts";
import { acceptUnverified } from "../../../../core/trust/verified-extension.ts";
import type { PluginManifest } from "../../../../sdk/contract/index.ts";
import { changeAt, compileSchema, pathsIn } from "../../../support/contract.ts";

describe("the SDK's contract of manifests", () => {
  const isManifest = compileSchema("plugin");

  const module = Buffer.from("a module");
  const whole: PluginManifest = {
    apiVersion: "gateway/v1",
    kind: "Plugin",
    metadata: {
      name: "sample",
      version: "1.0.0-rc.1+b2",
      title: "Ein Plugin",
      description: "d",
      authors: ["a", "b"],
      license: "MIT",
    },
    abi: "gateway-plugin/1",
    module: "plugin.wasm",
    digest: contentDigest(module),
    settings: {
      schema: { type: "object", additionalProperties: false, properties: { most: { type: "integer" } } },
      defaults: {},
    },
    sequence: 4,
    capabilities: [],
    limits: { fuel: 10_000, memory_pages: 256 },
  };
  const taken = (manifest: Json): readonly [gateway: boolean, schema: boolean] => {
    const files = new Map([
      ["plugin.wasm", module],
      ["plugin.yaml", Buffer.from(stringify(manifest))],
    ]);
    const folder = {
      path: "p",
      kind: "plugin",
      files,
      fileDigests: new Map(),
      digest: "sha256:00",
      signature: undefined,
    } as const;
    try {
      readPlugin("p", acceptUnverified(folder, null), {});
      return [true, isManifest(manifest)];
    } catch (error) {
      if (error instanceof GatewayError && error.code === "PLUGIN_INVALID") return [false, isManifest(manifest)];
      throw error;
    }
  };
  const required = new Set(["", "apiVersion", "kind", "metadata", "abi", "module", "digest"]);

  it("takes what the gateway takes, with and without each part that may be left out", () => {
    const json = whole as unknown as Json;
    expect(taken(json)).to.deep.equal([true, true]);
    for (const path of pathsIn(json)) {
      const [gateway, schema] = taken(changeAt(json, path, undefined));
      expect(schema, path.join("/")).to.equal(gateway);
    }
    expect(Object.keys(whole).filter((key) => !taken(changeAt(json, [key], undefined))[0])).to.have.members(
      [...required].filter((key) => key !== ""),
    );
  });

  it("refuses what the gateway refuses", () => {
    const changes: readonly (readonly [path: string, value: Json])[] = [
      ["apiVersion", "gateway/v2"],
      ["kind", "PolicyPack"],
      ["abi", "gateway-plugin/2"],
      ["more", 1],
      ["metadata/more", 1],
      ["metadata/name", "Sample"],
      ["metadata/name", "x".repeat(65)],
      ["metadata/version", "1.0"],
      ["metadata/version", "01.0.0"],
      ["metadata/title", ""],
      ["metadata/title", "   "],
      ["metadata/title", "x".repeat(161)],
      ["metadata/title", "a\u200bb"],
      ["metadata/authors", "a"],
      ["metadata/authors/0", 1],
      ["module", "../plugin.wasm"],
      ["module", "plugin.js"],
      ["digest", "sha256:00"],
      ["digest", `sha256:${"A".repeat(64)}`],
      ["settings/schema/additionalProperties", true],
      ["settings/schema/type", "array"],
      ["settings/more", 1],
      ["sequence", -1],
      ["sequence", 1.5],
      ["capabilities/0", "clock"],
      ["limits/fuel", 9_999],
      ["limits/fuel", 50_000_001],
      ["limits/memory_pages", 0],
      ["limits/memory_pages", 257],
      ["limits/more", 1],
    ];
    for (const [path, value] of changes) {
      const changed = changeAt(whole as unknown as Json, path.split("/"), value);
      expect(taken(changed), `${path}: ${JSON.stringify(value)}`).to.deep.equal([false, false]);
    }
  });

  it("leaves to the gateway what no schema says", () => {
    for (const [path, value] of [
      ["digest", `sha256:${"0".repeat(64)}`],
      ["module", "other.wasm"],
      ["settings/defaults", { most: "many" }],
      ["settings/schema/properties/most/type", "whole"],
    ] as const) {
      expect(taken(changeAt(whole as unknown as Json, path.split("/"), value)), path).to.deep.equal([false, true]);
    }
  });
});
