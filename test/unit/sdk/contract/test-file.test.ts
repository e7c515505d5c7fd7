import type { ValidateFunction } from "ajv";
import { expect } from "chai";
import { stringify } from "yaml";
import type { Json } from "../../../../core/action/json.ts";
import { FaultList } from "../../../../core/config/fault.ts";
import { readTests } from "../../../../core/policy/test-file.ts";
import type { TestFile } from "../../../../sdk/contract/index.ts";
import { changeAt, compileSchema, pathsIn } from "../../../support/contract.ts";

describe("the SDK's contract of files of tests", () => {
  const isTestFile = compileSchema("test-file");
  const whole = {
    cases: [
      {
        name: "all there is to say",
        action: {
          time: "2026-12-31T00:00:00+01:00",
          tenant: "acme",
          principal: { id: "p", role: "viewer", key_id: "k" },
          session: { id: "s", transport: "sse", label: "l" },
          task: "t",
          protocol: "model",
          phase: "output",
          tool: "chat.completions",
          target: "mock/small",
          capability: "generate",
          arguments: [null],
          continuation: { requestState: "x" },
          output: null,
          tool_definition: { digest: "sha256:00", annotations: {} },
          untrusted: true,
          client: { name: "c", version: "1", address: "::1" },
          facts: {
            hosts: ["a.example"],
            paths: ["/etc"],
            more: true,
            effect: "delete",
            path: [{ plain: "/etc", inside: false, odd: false }],
          },
          session_state: {
            risk: 1,
            actions: 2,
            reviews: 3,
            tools: 4,
            new_tool: false,
            taints: [{ name: "untrusted", target: "web", tool: "fetch", action: "a", age: 5 }],
          },
        },
        each: [{ tool: "a" }, {}],
        settings: { most: 3 },
        expect: {
          decision: "review",
          rules: ["sample.a"],
          not_rules: ["sample.b"],
          errors: 0,
          message: "too",
          approvals: 2,
          redactions: [{ rule: "sample.a", pointer: "/output/a", text: "x", replacement: "[x]" }],
        },
      },
    ],
  } satisfies TestFile & Json;

  it("takes what the gateway takes, with and without each part that may be left out", async () => {
    expect(await testsTaken(whole, isTestFile)).to.deep.equal([true, true]);
    for (const path of pathsIn(whole)) {
      const [gateway, schema] = await testsTaken(changeAt(whole, path, undefined), isTestFile);
      expect(schema, path.join("/")).to.equal(gateway);
    }
  });

  it("refuses what the gateway refuses", async () => {
    const changes: readonly (readonly [path: string, value: Json])[] = [
      ["more", 1],
      ["cases", {}],
      ["cases/0/name", ""],
      ["cases/0/name", "x".repeat(257)],
      ["cases/0/envelope", {}],
      ["cases/0/action", []],
      ["cases/0/action/tool", 1],
      ["cases/0/action/more", 1],
      ["cases/0/action/time", "2026-12-31"],
      ["cases/0/action/phase", "after"],
      ["cases/0/action/principal/role", "root"],
      ["cases/0/action/principal/keyId", "k"],
      ["cases/0/action/continuation", []],
      ["cases/0/action/untrusted", 1],
      ["cases/0/action/facts/hosts", "a.example"],
      ["cases/0/action/facts/effect", "destroy"],
      ["cases/0/action/facts/path", {}],
      ["cases/0/action/facts/shell", []],
      ["cases/0/action/facts/more_of_them", 1],
      ["cases/0/action/session_state/risk", -1],
      ["cases/0/action/session_state/taints/0/name", "Not One"],
      ["cases/0/action/session_state/taints/0/age", 0.5],
      ["cases/0/action/session_state/taints", Array(65).fill({ name: "a" })],
      ["cases/0/action/history", []],
      ["cases/0/each", []],
      ["cases/0/each", Array(1_001).fill({})],
      ["cases/0/each/0", "a"],
      ["cases/0/settings", []],
      ["cases/0/expect", "block"],
      ["cases/0/expect/decision", "deny"],
      ["cases/0/expect/decision", "block"],
      ["cases/0/expect/rules", "sample.a"],
      ["cases/0/expect/errors", 2],
      ["cases/0/expect/approvals", 11],
      ["cases/0/expect/redactions/0", {}],
      ["cases/0/expect/redactions/0/start", 1],
      ["cases/0/expect/more", 1],
    ];
    for (const [path, value] of changes) {
      const taken = await testsTaken(changeAt(whole, path.split("/"), value), isTestFile);
      expect(taken, `${path}: ${JSON.stringify(value)}`).to.deep.equal([false, false]);
    }
  });
});

/** Whether a file of tests is taken by the gateway, and by the schema. */
async function testsTaken(
  file: Json,
  isTestFile: ValidateFunction,
): Promise<readonly [gateway: boolean, schema: boolean]> {
  const faults = new FaultList("");
  await readTests(new Map([["tests/a.yaml", Buffer.from(stringify(file))]]), "action", faults);
  return [faults.count === 0, isTestFile(file)];
}
