import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import type * as CedarModule from "@cedar-policy/cedar-wasm/nodejs";
import { expect } from "chai";
import { type ActionEnvelope, phases } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { openEngineFolder, testEngine } from "../../../core/engine/engine-load.ts";
import { EnginePolicy } from "../../../core/engine/engine-policy.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import type { VerifiedExtension } from "../../../core/trust/verified-extension.ts";
import { cedarFiles, cedarSchema, noteCall } from "../../support/cedar-folder.ts";
import { engineExtension, engineRefusal } from "../../support/engine-folder.ts";

type Changed = Readonly<Record<string, string>>;

const extensionOf = (changed: Changed = {}): VerifiedExtension => engineExtension(cedarFiles(changed));
const refusalOf = (changed: Changed): Promise<string> => engineRefusal(cedarFiles(changed), "cedar");

describe("a folder of Cedar policies", () => {
  let judge: (action: ActionEnvelope) => Verdict;

  before(async () => {
    const { engine } = await openEngineFolder("folder", extensionOf());
    judge = (action) => engine.judge(action) as Verdict;
  });

  const decided = (args: Json, changed: Partial<ActionEnvelope> = {}): readonly [string, readonly string[]] => {
    const { decision, findings } = judge(noteCall(args, changed));
    return [decision, findings.map(({ rule }) => rule)];
  };

  it("permits, by the policies that Cedar names", () => {
    expect(decided({ title: "a" })).to.deep.equal(["allow", ["notes.write"]]);
  });

  it("blocks what is forbidden, with the annotations of the policy", () => {
    const { decision, findings, risk } = judge(noteCall({ text: "a secret" }));
    const told = { rule: "notes.no-secret", decision: "block", message: "secrets stay here", severity: "critical" };
    expect(decision).to.equal("block");
    expect(findings).to.deep.equal([{ ...told, risk: 95, mode: "enforce" }]);
    expect(risk).to.equal(95);
  });

  it("blocks what no policy permits, and what the schema does not declare", () => {
    expect(decided({}, { target: "elsewhere" })).to.deep.equal(["block", ["notes.not-permitted"]]);
    expect(decided({}, { principal: { id: "p", role: "viewer", keyId: "k" } })[0]).to.equal("block");
    expect(decided({}, { capability: "deploy" })).to.deep.equal(["block", ["notes.not-permitted"]]);
  });

  it("holds for a person what a permit marked `review` permits, unless it is forbidden", () => {
    const { decision, findings } = judge(noteCall({}, { capability: "delete" }));
    expect(decision).to.equal("review");
    expect(findings).to.have.length(1);
    expect(findings[0]).to.include({ rule: "notes.delete-asks", message: "deleting needs a person", approvals: 2 });
    expect(decided({ text: "secret" }, { capability: "delete" })).to.deep.equal(["block", ["notes.no-secret"]]);
  });

  it("fails where a `forbid` fails, which Cedar would leave out of its answer", () => {
    expect(() => judge(noteCall({ title: "quoted", count: 3 })))
      .to.throw("policy `counts` (policies.cedar:15) failed: integer overflow")
      .with.property("message")
      .that.not.includes("`3`");
  });

  for (const [name, args, reason] of [
    ["a number that is none", { count: 1.5 }, "expected Long in `context.arguments.count`"],
    ["a text for a number", { count: "1" }, "expected Long in `context.arguments.count`"],
    ["a decimal of five places", { price: 1.00001 }, "expected a decimal of at most four places"],
    ["a null in a set", { tags: ["a", null] }, "expected String in `context.arguments.tags[]`"],
    ["an entity for a text", { title: { __entity: { type: "Role", id: "admin" } } }, "expected String"],
    ["a value of Cedar's own for a text", { title: { __extn: { fn: "ip", arg: "::1" } } }, "expected String"],
    ["a list of arguments", [], "expected Record in `context.arguments`"],
    ["more text than is read", { text: "x".repeat(65_537) }, "expected at most 65536 characters"],
    ["more values than are read", { tags: Array(4_100).fill("x") }, "expected at most 4096 values"],
  ] as const satisfies readonly (readonly [string, Json, string])[]) {
    it(`fails for ${name}`, () => {
      expect(() => judge(noteCall(args))).to.throw(reason);
    });
  }

  it("reads decimals, sets, absent members and nulls as the schema declares them, and nothing else", () => {
    const args = { price: 1.25, tags: ["a"], title: null, count: 0, other: { deep: [1.5, null] }, __proto__: 1 };
    expect(decided(args)).to.deep.equal(["allow", ["notes.write"]]);
  });

  it("blocks where Cedar traps, and answers by another instance afterwards", async () => {
    const { engine } = await openEngineFolder("folder", engineExtension(cedarFiles()));
    // The instance that was loaded last is the engine's.
    const instance = createRequire(import.meta.url)("@cedar-policy/cedar-wasm/nodejs") as typeof CedarModule;
    let traps = 0;
    const trap = (): never => {
      traps++;
      throw new WebAssembly.RuntimeError("unreachable");
    };
    Object.assign(instance, { statefulIsAuthorized: trap });
    expect(() => engine.judge(noteCall({ text: "plain" }))).to.throw("Cedar broke off");
    expect(() => engine.judge(noteCall({ text: "a secret" }))).to.throw("Cedar broke off");
    let verdict: Verdict | undefined;
    while (verdict === undefined) {
      await nextTurn();
      try {
        verdict = engine.judge(noteCall({ text: "plain" })) as Verdict;
      } catch (error) {
        expect(error).to.include({ reason: "lost" });
      }
    }
    expect(verdict.decision).to.equal("allow");
    expect((engine.judge(noteCall({ text: "a secret" })) as Verdict).decision).to.equal("block");
    expect(traps).to.equal(1);
  });

  it("gives the same verdict for the same envelope", () => {
    const action = noteCall({ text: "a secret", title: "b" });
    expect(Array.from({ length: 50 }, () => JSON.stringify(judge(action)))).to.satisfy(
      (all: readonly string[]) => new Set(all).size === 1,
    );
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
    const { decision, verdicts } = await chain.evaluate(noteCall({ count: 3 }));
    expect(decision).to.equal("block");
    expect(verdicts[0]?.error).to.include("policy `counts`");
    expect(failures).to.deep.equal(["cedar evaluation"]);
  });

  describe("of which some name an action or a tool", () => {
    const many = Array.from(
      { length: 40 },
      (_, at) => `@id("tool-${at}") forbid(principal, action == Action::"write", resource == Tool::"local/t${at}");`,
    );
    const policies = ['@id("all") permit(principal, action, resource);', ...many].join("\n");

    it("are asked of that action and tool, and of no other", async () => {
      const { engine } = await openEngineFolder("folder", extensionOf({ "policies.cedar": policies }));
      const rules = (tool: string, capability: "write" | "delete"): string =>
        (engine.judge(noteCall({}, { tool, capability })) as Verdict).findings.map(({ rule }) => rule).join();
      expect(rules("t7", "write")).to.equal("notes.tool-7");
      expect(rules("t7", "delete")).to.equal("notes.all");
      expect(rules("t40", "write")).to.equal("notes.all");
    });
  });

  describe("with entities", () => {
    const tool = (id: string, group: string): object => ({
      uid: { type: "Tool", id },
      attrs: { sensitivity: "high", name: "forged" },
      parents: [{ type: "Group", id: group }],
    });
    const entities = JSON.stringify([
      tool("local/write_note", "dangerous"),
      tool("local/other", "plain"),
      { uid: { type: "Agent", id: "acme/k1" }, attrs: { role: "admin", key_id: "k1" }, parents: [] },
    ]);
    const policies = `
@id("all") permit(principal, action, resource);
@id("group") forbid(principal, action, resource in Group::"dangerous");
@id("name") forbid(principal, action, resource) when { resource.name == "forged" };
@id("role") forbid(principal, action, resource) when { principal.role == "admin" };
`;

    it("adds what the folder says of a tool, but not in place of what the gateway knows", async () => {
      const changed = { "policies.cedar": policies, "entities.json": entities };
      const { engine } = await openEngineFolder("folder", extensionOf(changed));
      const rules = (name: string): readonly string[] =>
        (engine.judge(noteCall({}, { tool: name })) as Verdict).findings.map(({ rule }) => rule);
      expect(rules("write_note")).to.deep.equal(["notes.group"]);
      expect(rules("other")).to.deep.equal(["notes.all"]);
    });

    it("fails for a tool without an attribute that the schema requires", async () => {
      const schema = cedarSchema.replace("sensitivity?: String", "sensitivity: String");
      const changed = { "policies.cedar": policies, "entities.json": entities, "schema.cedarschema": schema };
      const { engine } = await openEngineFolder("folder", extensionOf(changed));
      expect((engine.judge(noteCall({}, { tool: "other" })) as Verdict).decision).to.equal("allow");
      expect(() => engine.judge(noteCall({}, { tool: "unknown" }))).to.throw("expected `Tool.sensitivity`");
    });
  });

  it("names tools and agents so that no two have one name", async () => {
    const policies = `@id("one") permit(principal, action, resource == Tool::"a%2Fb/c");`;
    const { engine } = await openEngineFolder("folder", extensionOf({ "policies.cedar": policies }));
    const decide = (target: string, tool: string): string =>
      (engine.judge(noteCall({}, { target, tool })) as Verdict).decision;
    expect([decide("a/b", "c"), decide("a", "b/c"), decide("a%2Fb", "c")]).to.deep.equal(["allow", "block", "block"]);
  });

  it("explains its decision by the place of each policy", async () => {
    const { engine } = await openEngineFolder("folder", extensionOf());
    const action = noteCall({ text: "secret" });
    const { rules = [] } = engine.explainer?.explain(action, action) ?? {};
    expect(rules.map(({ rule, file, line }) => [rule, file, line])).to.deep.equal([
      ["notes.no-secret", "policies.cedar", 11],
    ]);
    expect(engine.explainer?.explain(noteCall({ count: 3 }), null)).to.deep.equal({ rules: [], near: [] });
  });

  it("runs its own tests in every phase", async () => {
    const tests = `cases:
  - name: a note is written
    action: { tool: write_note, target: local, capability: write, arguments: { title: a } }
    expect: { decision: allow, rules: [notes.write] }
  - name: a count is too large
    action: { tool: write_note, target: local, capability: write, arguments: { count: 3 } }
    expect: { decision: block, errors: 1 }
  - name: this one is wrong
    action: { tool: list_notes, target: local, capability: read, phase: list }
    expect: { decision: block }
`;
    const extension = extensionOf({ "tests/calls.yaml": tests });
    const { source, engine } = await openEngineFolder("folder", extension);
    const results = await testEngine("folder", source, engine);
    expect(results.map(({ failures }) => failures.join())).to.deep.equal(["", "", "expected block, got allow"]);
  });

  for (const [name, changed, reason] of [
    [
      "a member that the schema lacks",
      `permit(principal, action, resource) when { context.foo };`,
      "policies.cedar:1:44:",
    ],
    [
      "an action that the schema lacks",
      `permit(principal, action == Action::"reed", resource);`,
      "unrecognized action",
    ],
    [
      "a policy that can never apply",
      `permit(principal, action == Action::"write", resource) when { context.arguments has zzz };`,
      "policy is impossible",
    ],
    ["text that is no policy", "permit(principal);", "policies.cedar:1:"],
    ["no policy", "// none\n", "expected at least one policy"],
    ["a template", "permit(principal == ?principal, action, resource);", "expected policies, got a template"],
    ["a misspelt annotation", `@decison("review") permit(principal, action, resource);`, "did you mean `decision`"],
    ["a forbid that asks", `@decision("review") forbid(principal, action, resource);`, "mark a `permit` with `review`"],
    ["two policies of one id", `@id("a") permit(principal, action, resource);`.repeat(2), "expected an id of its own"],
    [
      "brackets that Cedar breaks off on",
      `permit(principal, action, resource) when { ${"(".repeat(3_000)}true${")".repeat(3_000)} };`,
      "is it nested too deeply?",
    ],
    [
      "an expression whose evaluation goes too deep",
      `permit(principal, action, resource) when { ${Array(200).fill("true").join(" && ")} };`,
      "expected a policy that is not nested so deeply",
    ],
  ] as const) {
    it(`is refused for ${name}`, async () => {
      expect(await refusalOf({ "policies.cedar": changed })).to.include(reason);
    });
  }

  for (const [name, changed, reason] of [
    [
      "a schema with an action of its own",
      { "schema.cedarschema": `${cedarSchema}\naction "reed" appliesTo { principal: Agent, resource: Tool };` },
      "did you mean `read`",
    ],
    ["a schema without tools", { "schema.cedarschema": "entity Agent;" }, "expected the entity type `Tool`"],
    ["a schema that is none", { "schema.cedarschema": "entity" }, "schema.cedarschema:1:"],
    ["two schemas", { "schema.cedarschema.json": "{}" }, "expected either"],
    [
      "entities of another type",
      { "entities.json": `[{"uid":{"type":"Zoo","id":"1"},"attrs":{},"parents":[]}]` },
      "not declared in the schema",
    ],
    [
      "a manifest of another engine",
      { "engine.yaml": cedarFiles()["engine.yaml"]?.replace("cedar", "rego") ?? "" },
      "expected `engine: cedar`, as the configuration says, got `rego`",
    ],
  ] as const) {
    it(`is refused for ${name}`, async () => {
      expect(await refusalOf(changed)).to.include(reason);
    });
  }

  it("takes a schema in JSON as well", async () => {
    const schema = JSON.stringify({
      "": {
        entityTypes: { Agent: {}, Tool: {} },
        actions: { write: { appliesTo: { principalTypes: ["Agent"], resourceTypes: ["Tool"] } } },
      },
    });
    const files = { "schema.cedarschema.json": schema, "policies.cedar": "permit(principal, action, resource);" };
    const { "schema.cedarschema": _, ...rest } = cedarFiles(files);
    const { engine } = await openEngineFolder("folder", engineExtension(rest));
    expect((engine.judge(noteCall({})) as Verdict).decision).to.equal("allow");
  });
});
