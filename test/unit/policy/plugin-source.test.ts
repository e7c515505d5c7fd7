import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { readPlugin, readPluginTests } from "../../../core/policy/plugin-source.ts";
import { acceptUnverified, type VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { rejection } from "../../support/ledger-world.ts";

const module = Buffer.from("a module");
const whole = `apiVersion: gateway/v1
kind: Plugin
metadata: { name: sample, version: 1.0.0, title: Sample }
abi: gateway-plugin/1
module: plugin.wasm
digest: ${contentDigest(module)}
settings:
  schema: { type: object, additionalProperties: false, properties: { most: { type: integer } } }
  defaults: { most: 3 }
`;

function read(text: string, settings: JsonObject = {}): ReturnType<typeof readPlugin> {
  const files = new Map([
    ["plugin.wasm", module],
    ["plugin.yaml", Buffer.from(text)],
  ]);
  return readPlugin("p", accept(files), settings);
}

function accept(files: ReadonlyMap<string, Buffer>): VerifiedExtension {
  const digest = "sha256:00";
  return acceptUnverified({ kind: "plugin", files, digest, signature: undefined }, null);
}

function faultOf(text: string, settings: JsonObject = {}): string {
  try {
    read(text, settings);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "PLUGIN_INVALID") return error.message;
    throw error;
  }
  throw new Error("expected a fault, got none");
}

describe("a plugin's folder", () => {
  it("gives the module, the settings with the operator's in their place, and the limits", () => {
    const limits = { fuel: 5_000_000, memoryPages: 64 };
    const { settingsSchema, ...source } = read(whole);
    expect(settingsSchema.merge({})).to.deep.equal({ most: 3 });
    expect(source).to.deep.equal({
      name: "sample",
      version: "1.0.0",
      sequence: 0,
      module,
      settings: { most: 3 },
      limits,
    });
    expect(read(whole, { most: 9 }).settings).to.deep.equal({ most: 9 });
    const small = read(`${whole}limits: { fuel: 10000, memory_pages: 1 }\n`);
    expect(small.limits).to.deep.equal({ fuel: 10_000, memoryPages: 1 });
  });

  const faults: readonly (readonly [name: string, said: RegExp, text: string, settings?: JsonObject])[] = [
    ["another kind", /plugin\.yaml:2:\d+: kind: expected `Plugin`/, whole.replace("kind: Plugin", "kind: PolicyPack")],
    ["another ABI", /abi: expected `gateway-plugin\/1`/, whole.replace("gateway-plugin/1", "gateway-plugin/2")],
    ["an unknown key", /fuel: unknown key/, `${whole}fuel: 1\n`],
    ["no metadata", /metadata: expected this key/, whole.replace(/metadata: .*/, "")],
    ["a name that is no word", /metadata\.name: expected a word/, whole.replace("name: sample", "name: Sample.X")],
    ["a capability", /expected no capabilities/, `${whole}capabilities: [network]\n`],
    ["a module that is not there", /no such file/, whole.replace("plugin.wasm", "other.wasm")],
    ["a module outside the folder", /file name like/, whole.replace("plugin.wasm", "../plugin.wasm")],
    [
      "a module of another digest",
      /expected that of the module, sha256:[0-9a-f]{64}; `gateway plugin build` writes it/,
      whole.replace(/sha256:..../, "sha256:0000"),
    ],
    [
      "more fuel than there is",
      /limits\.fuel: expected an integer from 10000 to 50000000/,
      `${whole}limits: { fuel: 50000001 }\n`,
    ],
    ["more memory than there is", /limits\.memory_pages: expected/, `${whole}limits: { memory_pages: 257 }\n`],
    ["a setting it does not have", /unknown setting `least`/, whole, { least: 1 }],
    ["a setting of another type", /`settings\/most`/, whole, { most: "x" }],
    ["text that is no YAML", /plugin\.yaml:\d+/, "{"],
  ];
  for (const [name, said, text, settings] of faults) {
    it(`is refused with ${name}`, () => {
      expect(faultOf(text, settings)).to.match(said);
    });
  }

  it("is refused without a manifest", () => {
    expect(() => readPlugin("p", accept(new Map()), {})).to.throw("expected a manifest");
  });
});

describe("a plugin's own tests", () => {
  const cases = `cases:
  - name: usual
    action: { tool: a }
    expect: { decision: abstain }
  - name: less
    action: { tool: a, phase: output, output: { text: b } }
    settings: { most: 1 }
    expect: { decision: block, rules: [sample.most] }
`;

  function readTests(files: Readonly<Record<string, string>>): ReturnType<typeof readPluginTests> {
    const all = new Map(
      Object.entries({ ...files, "plugin.yaml": whole }).map(([name, text]) => [name, Buffer.from(text)]),
    );
    const extension = accept(new Map([...all, ["plugin.wasm", module]]));
    return readPluginTests("p", extension, readPlugin("p", extension, {}).settingsSchema);
  }

  async function testFault(files: Readonly<Record<string, string>>): Promise<string> {
    const error = await rejection(readTests(files));
    expect(error).to.include({ code: "PLUGIN_INVALID" });
    return error.message;
  }

  it("are read with the author's settings and the case's in their place", async () => {
    const read = await readTests({ "tests/a.yaml": cases, "tests/data/a.csv": "x", "tests.txt": "y" });
    expect(read.map(({ test, settings }) => [test.name, test.envelope.phase, settings])).to.deep.equal([
      ["usual", "input", { most: 3 }],
      ["less", "output", { most: 1 }],
    ]);
  });

  it("are refused where a setting does not fit, an action is not understood, or a file would be ignored", async () => {
    expect(await testFault({ "tests/a.yaml": cases.replace("most: 1", "most: x") })).to.include("tests/a.yaml:5:5");
    expect(await testFault({ "tests/a.yaml": cases.replace("action:", "envelope:") })).to.include(
      "tests/a.yaml:3:5: cases[0].envelope: unknown key",
    );
    expect(await testFault({ "tests/a.yml": cases })).to.include("tests/a.yml:1:1: expected `tests/*.yaml`");
  });

  it("are at most 10,000", async () => {
    const row = "      - {}\n";
    const table = (rows: number): string =>
      `  - name: n\n    expect: { decision: abstain }\n    each:\n${row.repeat(rows)}`;
    const most = `cases:\n${table(1_000).repeat(10)}`;
    expect(await readTests({ "tests/a.yaml": most })).to.have.length(10_000);
    expect(await testFault({ "tests/a.yaml": most + table(1) })).to.include("expected at most 10000 cases, got 10001");
  });
});
