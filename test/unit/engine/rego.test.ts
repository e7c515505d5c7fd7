import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type ActionEnvelope, phases } from "../../../core/action/envelope.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { openEngineFolder, testEngine } from "../../../core/engine/engine-load.ts";
import { EnginePolicy } from "../../../core/engine/engine-policy.ts";
import { RegoMachine } from "../../../core/engine/rego/rego-machine.ts";
import { parseModule } from "../../../core/plugin/wasm/module-parser.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import type { VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { noteCall } from "../../support/cedar-folder.ts";
import { engineExtension, engineRefusal } from "../../support/engine-folder.ts";
import { foreignFolder } from "../../support/foreign-module.ts";
import { regoFiles, regoModule } from "../../support/rego-folder.ts";

type Changed = Readonly<Record<string, string | Uint8Array>>;

const extensionOf = (changed: Changed = {}): VerifiedExtension => engineExtension(regoFiles(changed));
const refusalOf = (changed: Changed): Promise<string> => engineRefusal(regoFiles(changed), "rego");

describe("a folder of Rego policies", () => {
  let judge: (action: ActionEnvelope) => Verdict;

  before(async () => {
    const { engine } = await openEngineFolder("folder", extensionOf());
    judge = (action) => engine.judge(action) as Verdict;
  });

  const decided = (text: string): readonly [string, readonly string[]] => {
    const { decision, findings } = judge(noteCall({ text }));
    return [decision, findings.map(({ rule }) => rule)];
  };

  it("permits where the entrypoint is true, and blocks where it is false or undefined", () => {
    expect(decided("plain")).to.deep.equal(["allow", []]);
    expect(decided("a refusal")).to.deep.equal(["block", ["notes.not-permitted"]]);
    expect(decided("a hole")).to.deep.equal(["block", ["notes.not-permitted"]]);
  });

  it("decides as the entrypoint says, with its reasons", () => {
    const { decision, findings, risk } = judge(noteCall({ text: "a secret" }));
    const told = { rule: "notes.no-secret", decision: "block", message: "secrets stay here", severity: "critical" };
    expect(decision).to.equal("block");
    expect(findings).to.deep.equal([{ ...told, risk: 90, mode: "enforce" }]);
    expect(risk).to.equal(90);
    expect(judge(noteCall({ text: "a question" })).findings[0]).to.include({ rule: "notes.asks", approvals: 2 });
    expect(decided("no reason")).to.deep.equal(["block", ["notes.not-permitted"]]);
  });

  for (const [text, reason] of [
    ["an abort", "the policies aborted"],
    ["a loop", "within 20000000 units of fuel"],
    ["a trap", "the policies trapped"],
    ["a dive", "bytes of stack"],
    ["a flood", "within the memory's cap"],
    ["an error", "ended with an error"],
    ["a number", "expected true, false, or an object"],
    ["a half", "expected strict JSON"],
    ["a stranger", "expected true, false, or an object"],
    ["a control", "expected printable messages"],
    ["a pair", "expected one result"],
  ] as const) {
    it(`fails for ${text}, and answers the next as if nothing had been`, () => {
      expect(() => judge(noteCall({ text }))).to.throw(reason);
      expect(decided("plain")).to.deep.equal(["allow", []]);
    });
  }

  it("fails for an action that is too large", () => {
    expect(() => judge(noteCall({ text: "x".repeat(1_048_576) }))).to.throw("at most 1048576 bytes");
  });

  it("reads actions that are larger than the memory was", () => {
    expect(decided("x".repeat(36_000))).to.deep.equal(["allow", []]);
    expect(decided("plain")).to.deep.equal(["allow", []]);
  });

  it("fails where the module cannot read its input, for which it would be undefined", async () => {
    const machine = await RegoMachine.open({
      module: regoModule(),
      data: Buffer.from("{}"),
      entrypoint: "gateway/decision",
    });
    expect(() => machine.evaluate(Buffer.from("[]"))).to.throw("the module can read as JSON");
  });

  it("gives the same verdict for the same envelope, whatever came before, also where memory grew", () => {
    const verdicts = Array.from({ length: 20 }, () => {
      expect(decided("a growth")).to.deep.equal(["allow", []]);
      return JSON.stringify(judge(noteCall({ text: "a question" })));
    });
    expect(new Set(verdicts).size).to.equal(1);
  });

  it("blocks in the chain where it fails, and counts that", async () => {
    const { engine, source } = await openEngineFolder("folder", extensionOf());
    const failures: string[] = [];
    const observer = {
      failed: (...failure: readonly string[]) => void failures.push(failure.join(" ")),
      circuit: () => undefined,
    };
    const policy = new EnginePolicy({ ref: source.ref, mode: "enforce", phases, engine, observer });
    const options = { defaultDecision: "allow", deadlineMs: 1_000, newId: () => "id", elapsedMs: () => 0 } as const;
    const chain = new PolicyChain({ ...options, policies: [policy] });
    for (const text of ["an abort", "a number"]) {
      expect((await chain.evaluate(noteCall({ text }))).decision).to.equal("block");
    }
    expect(failures).to.deep.equal(["rego evaluation", "rego answer"]);
  });

  it("explains its decision by the reasons", async () => {
    const { engine } = await openEngineFolder("folder", extensionOf());
    const action = noteCall({ text: "a secret" });
    const { rules = [] } = engine.explainer?.explain(action, action) ?? {};
    expect(rules.map(({ rule, file, why }) => [rule, file, why])).to.deep.equal([
      ["notes.no-secret", "policy.wasm", "the entrypoint `gateway/decision` gives this reason: secrets stay here"],
    ]);
    expect(engine.explainer?.explain(noteCall({ text: "a trap" }), null)).to.deep.equal({ rules: [], near: [] });
  });

  it("runs its own tests", async () => {
    const tests = `cases:
  - name: a secret stays
    action: { tool: write_note, target: local, capability: write, arguments: { text: a secret } }
    expect: { decision: block, rules: [notes.no-secret] }
  - name: an abort blocks
    action: { tool: write_note, target: local, capability: write, arguments: { text: an abort } }
    expect: { decision: block, errors: 1 }
  - name: this one is wrong
    action: { tool: write_note, target: local, capability: write }
    expect: { decision: block }
`;
    const { source, engine } = await openEngineFolder("folder", extensionOf({ "tests/calls.yaml": tests }));
    const results = await testEngine("folder", source, engine);
    expect(results.map(({ failures }) => failures.join())).to.deep.equal(["", "", "expected block, got allow"]);
  });

  const manifest = String(regoFiles()["engine.yaml"]);
  for (const [name, changed, reason] of [
    [
      "built-in functions of the host",
      { "policy.wasm": regoModule({ builtins: '{"http.send":0,"time.now_ns":1}' }) },
      "got `http.send`, `time.now_ns`",
    ],
    ["another version", { "policy.wasm": regoModule({ version: 2 }) }, "expected version 1 of OPA's interface, got 2"],
    [
      "an import of another kind",
      { "policy.wasm": regoModule({ more: '(import "env" "fetch" (func (param i32)))' }) },
      "got `env` `fetch`",
    ],
    [
      "an import of a plugin",
      { "policy.wasm": regoModule({ more: '(import "extism:host/env" "input_length" (func (result i64)))' }) },
      "got `extism:host/env` `input_length`",
    ],
    [
      "an import of another type",
      { "policy.wasm": regoModule({ more: '(import "env" "opa_println" (func (param i64)))' }) },
      "expected the import `opa_println` to have its type",
    ],
    ["an entrypoint that is not there", { "engine.yaml": `${manifest}entrypoint: a/b\n` }, "got `gateway/decision`"],
    ["an entrypoint that is no path", { "engine.yaml": `${manifest}entrypoint: a//b\n` }, "engine.yaml:5:"],
    ["data that is none", { "data.json": "[" }, "expected `data.json` to be JSON"],
    ["data in other places", { "roles/data.json": "{}" }, "roles/data.json:1:1: expected all data in `data.json`"],
    ["a module that is none", { "policy.wasm": "(module)" }, "expected a core module"],
  ] as const satisfies readonly (readonly [string, Changed, string])[]) {
    it(`is refused for ${name}`, async () => {
      expect(await refusalOf(changed)).to.include(reason);
    });
  }

  it("is refused without a module, and where Cedar's manifest names an entrypoint", async () => {
    const { "policy.wasm": _, ...rest } = regoFiles();
    expect(await engineRefusal(rest)).to.include("policy.wasm:1:1: expected this file");
    const cedar = manifest.replace("rego", "cedar");
    const changed = extensionOf({ "engine.yaml": `${cedar}entrypoint: a/b\n` });
    expect(String(await openEngineFolder("folder", changed).catch((each: unknown) => each))).to.include(
      "expected no `entrypoint`",
    );
  });

  it("is no plugin: OPA's imports stay unknown to those", () => {
    expect(() => parseModule(regoModule())).to.throw("expected imports of the ABI, got `env` `memory`");
  });

  const folder = foreignFolder;
  if (folder === undefined) return;

  it("runs a module that OPA made, in the same way each time", async () => {
    const module = readFileSync(join(folder, "opa-policy.wasm"));
    const entrypoint = "example/can_access";
    const machine = await RegoMachine.open({ module, data: Buffer.from('{"roles":{"a":["b"]}}'), entrypoint });
    const input = Buffer.from(JSON.stringify({ message: "hi", text: "\u00fc".repeat(20_000), deep: [[[{ a: 1.5 }]]] }));
    for (const _ of "123") {
      expect(Buffer.from(machine.evaluate(input)).toString()).to.equal('[{"result":false}]');
      expect(() => machine.evaluate(Buffer.from("{"))).to.throw("the module can read as JSON");
      expect(() => machine.evaluate(Buffer.from(`${"[".repeat(200_000)}`))).to.throw("bytes of stack");
    }
    const files = { "engine.yaml": `${manifest}entrypoint: ${entrypoint}\n`, "policy.wasm": module };
    const { engine } = await openEngineFolder("folder", extensionOf(files));
    expect((engine.judge(noteCall({})) as Verdict).findings.map(({ rule }) => rule)).to.deep.equal([
      "notes.not-permitted",
    ]);
  });
});
