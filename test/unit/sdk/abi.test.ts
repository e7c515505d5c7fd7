import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { abiFunctions, abiModule } from "../../../core/plugin/abi.ts";
import { wasiModule, wasiSignatures } from "../../../core/plugin/wasi.ts";
import { Host, abiModule as harnessModule } from "../../../sdk/harness/host.ts";
import { wasiModule as harnessWasi } from "../../../sdk/harness/wasi.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

const types: Readonly<Record<string, string>> = {
  u8: "i32",
  u32: "i32",
  u64: "i64",
  uint32_t: "i32",
  uint64_t: "i64",
  void: "",
};

interface Import {
  readonly name: string;
  readonly params: readonly string[];
  readonly results: readonly string[];
}

function importsIn(path: string, pattern: RegExp, typeOf: RegExp): readonly Import[] {
  const source = readFileSync(join(repositoryRoot, path), "utf8");
  return [...source.matchAll(pattern)].map(({ groups: { name = "", params = "", result = "" } = {} }) => ({
    name,
    params: [...params.matchAll(typeOf)].map(([, type = ""]) => types[type] ?? type),
    results: [types[result] ?? result].filter((type) => type !== ""),
  }));
}

describe("the ABI as the SDK tells it", () => {
  const declared: readonly (readonly [what: string, imports: readonly Import[]])[] = [
    [
      "AssemblyScript",
      importsIn(
        "sdk/assembly/abi.ts",
        /"extism:host\/env", "(?<name>\w+)"\)\nexport declare function \w+\((?<params>.*)\): (?<result>\w+);/g,
        /: (\w+)/g,
      ),
    ],
    [
      "C",
      importsIn(
        "sdk/c/gateway_plugin.h",
        /^GATEWAY_IMPORT\((?<name>\w+)\) (?<result>\w+) \w+\((?<params>.*)\);/gm,
        /(uint\d+_t) \w+/g,
      ),
    ],
    [
      "Rust",
      importsIn(
        "sdk/rust/gateway_plugin.rs",
        /^ {4}fn (?<name>\w+)\((?<params>.*)\)(?: -> (?<result>\w+))?;$/gm,
        /: (\w+)/g,
      ),
    ],
  ];

  for (const [what, imports] of declared) {
    it(`has the gateway's functions, with their types, in ${what}`, () => {
      expect(imports.length).to.be.greaterThan(6);
      for (const { name, ...signature } of imports) {
        expect(signature, name).to.deep.equal(abiFunctions[name as keyof typeof abiFunctions]);
      }
    });
  }

  it("is served whole by the harness, and so is WASI", () => {
    expect(harnessWasi).to.equal(wasiModule);
    expect(Object.keys(new Host(new Uint8Array(), () => undefined).wasi)).to.have.members(Object.keys(wasiSignatures));
    const host = new Host(new Uint8Array(), () => undefined);
    expect(Object.keys(host.functions)).to.have.members(Object.keys(abiFunctions));
    expect(harnessModule).to.equal(abiModule);
  });
});
