import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { type Asked, type AskingWorld, openAskingWorld } from "./asking-world.ts";

const path = "/v1/actions/evaluate";

function shell(command: string, more: object = {}): object {
  return { protocol: "shell", tool: "sh", target: "builder", arguments: { command }, ...more };
}

function approvalOf({ body }: Asked): { readonly id: string; readonly state: string } {
  return body.approval as { id: string; state: string };
}

describe("an agent that asks before it acts", () => {
  let world: AskingWorld;

  before(async () => {
    world = await openAskingWorld(`hooks:
  max_wait_seconds: 20
  capabilities:
    - { protocol: sql, tool: query, target: analytics, capability: read }
    - { protocol: git, tool: "*", capability: delete }`);
  });

  after(() => world?.stop());

  beforeEach(() => world.reviewer.clear());

  /** The effects and outcomes on record for a label, in order. */
  async function records(label: string): Promise<readonly unknown[]> {
    const found = await world.evidence.recordsOf((each) => each === label);
    return found.toSorted((a, b) => a.seq - b.seq).map(({ kind, effect }) => [kind, effect]);
  }

  it("is permitted what policy allows, once that is on record with its outcome", async () => {
    const action = { protocol: "sql", tool: "query", target: "analytics", arguments: { statement: "select 1" } };
    const { status, body } = await world.ask(path, action, { label: "allowed" });
    const { action_id, decision_id, ...said } = body;
    expect(status).to.equal(200);
    expect(said).to.deep.equal({
      permitted: true,
      decision: "allow",
      risk: 0,
      message: "Allowed by policy.",
      rules: [{ rule: "test.read", message: "it only reads", severity: "info" }],
      remediation: null,
    });
    const found = await world.evidence.recordsOf((label) => label === "allowed");
    const [decision, outcome] = found.toSorted((a, b) => a.seq - b.seq);
    expect([decision?.action.id, outcome?.action.id]).to.deep.equal([action_id, action_id]);
    expect([decision?.action.protocol, decision?.action.capability]).to.deep.equal(["sql", "read"]);
    expect(await records("allowed")).to.deep.equal([
      ["decision", "dispatched"],
      ["outcome", "success"],
    ]);
    expect(decision_id).to.match(/^[0-9a-f-]{36}$/);
  });

  it("is told of a block, its rules and the next step, with HTTP 200", async () => {
    const action = { protocol: "git", tool: "git", target: "origin", arguments: { args: ["push", "--force"] } };
    const { status, body } = await world.ask(path, action, { label: "blocked" });
    const { action_id, decision_id, ...said } = body;
    expect(status).to.equal(200);
    expect(said).to.deep.equal({
      permitted: false,
      code: "POLICY_BLOCKED",
      decision: "block",
      risk: (said as { risk: number }).risk,
      message: "it destroys data (rule test.stop).",
      rules: [{ rule: "test.stop", message: "it destroys data", severity: (body.rules as JsonObject[])[0]?.severity }],
      remediation: "Do not repeat this action as it is.",
    });
    expect(await records("blocked")).to.deep.equal([["decision", "not_dispatched"]]);
    expect([action_id, decision_id].every((id) => /^[0-9a-f-]{36}$/.test(String(id)))).to.equal(true);
  });

  it("is held for review, permitted once after it, and held anew when it asks again", async () => {
    const held = await world.ask(path, shell("make"), { label: "held" });
    const { id, state } = approvalOf(held);
    expect([held.status, held.body.decision, held.body.permitted, state]).to.deep.equal([
      200,
      "review",
      false,
      "pending",
    ]);
    expect(held.body.message).to.equal("it may do anything (rule test.hold).");
    expect(held.body.remediation).to.match(
      new RegExp(`^Approval ${id} is pending until .* repeat exactly the same call`),
    );
    await world.reviewer.approve(id);
    const other = await world.ask(path, shell("make install"), { label: "held" });
    expect([other.body.permitted, approvalOf(other).id === id]).to.deep.equal([false, false]);
    const granted = await world.ask(path, shell("make"), { label: "held" });
    expect([granted.body.decision, granted.body.permitted]).to.deep.equal(["allow", true]);
    expect(granted.body.approval).to.deep.equal({ id, state: "consumed" });
    const again = await world.ask(path, shell("make"), { label: "held" });
    expect([again.body.permitted, approvalOf(again).state]).to.deep.equal([false, "pending"]);
    expect(await records("held")).to.deep.equal([
      ["decision", "not_dispatched"],
      ["decision", "not_dispatched"],
      ["decision", "dispatched"],
      ["outcome", "success"],
      ["decision", "not_dispatched"],
    ]);
  });

  it("cannot approve itself by what it asks, says or sends along [S53]", async () => {
    const { id } = approvalOf(await world.ask(path, shell("make self"), { label: "self" }));
    const approving = [
      shell(`gateway approvals approve ${id}`, { capability: "approve" }),
      shell("make self", { arguments: { command: "make self", details: { approval: id, reviewer: "ada" } } }),
      {
        protocol: "mcp",
        tool: "approve",
        target: "gateway",
        capability: "approve",
        arguments: { id, reviewer: "ada" },
      },
    ];
    for (const action of approving) {
      const { body } = await world.ask(path, action, { label: "self" });
      expect(body.permitted, JSON.stringify(action)).to.equal(false);
    }
    const headers = { "x-gateway-approval": id, "x-gateway-reviewer": "ada", "x-gateway-approved": "true" };
    const again = await world.ask(path, shell("make self"), { label: "self", headers });
    expect(again.body.permitted).to.equal(false);
    expect(approvalOf(again)).to.include({ id, state: "pending" });
  });

  it("is told that a reviewer denied it", async () => {
    const { id } = approvalOf(await world.ask(path, shell("rm notes"), { label: "denied" }));
    await world.reviewer.deny(id, "not today");
    const { body } = await world.ask(path, shell("rm notes"), { label: "denied" });
    expect([body.permitted, body.code]).to.deep.equal([false, "APPROVAL_DENIED"]);
    expect(body.remediation).to.include("denied approval").and.to.include('"not today"');
  });

  describe("and waits for its review", () => {
    it("is permitted when it is approved meanwhile", async () => {
      const asked = world.ask(path, shell("wait", { wait_ms: 600_000 }), { label: "waits" });
      const { id } = await world.reviewer.awaitPending();
      await world.reviewer.approve(id);
      const { body } = await asked;
      expect([body.permitted, body.approval]).to.deep.equal([true, { id, state: "consumed" }]);
    });

    it("is answered as held when the time is over, and permitted later", async () => {
      const asked = await world.ask(path, shell("be quick", { wait_ms: 50 }), { label: "over" });
      expect([asked.body.permitted, approvalOf(asked).state]).to.deep.equal([false, "pending"]);
      await world.reviewer.approve(approvalOf(asked).id);
      const { body } = await world.ask(path, shell("be quick"), { label: "over" });
      expect(body.permitted).to.equal(true);
    });

    it("is permitted nothing where it hung up before the review", async () => {
      const abort = new AbortController();
      const asked = world.ask(path, shell("gone", { wait_ms: 20_000 }), { label: "gone", signal: abort.signal });
      const ended = asked.catch((error: Error) => error.name);
      const { id } = await world.reviewer.awaitPending();
      abort.abort();
      expect(await ended).to.equal("AbortError");
      await sleep(200);
      await world.reviewer.approve(id);
      await sleep(200);
      expect(await records("gone")).to.deep.equal([["decision", "not_dispatched"]]);
    });

    it("is refused when its session is stopped, and so is all that it asks then, under other labels too", async () => {
      const own = await openAskingWorld();
      try {
        const asked = own.ask(path, shell("stop me", { wait_ms: 20_000 }), { label: "stopped" });
        const { session } = await own.reviewer.awaitPending();
        await own.reviewer.killSession(session.id);
        const { status, type, body } = await asked;
        expect([status, type, body.code]).to.deep.equal([403, "application/problem+json", "SESSION_KILLED"]);
        const read = { protocol: "sql", tool: "query", target: "analytics", arguments: { statement: "select 1" } };
        for (const label of ["stopped", "fresh"]) {
          const next = await own.ask(path, read, { label });
          expect([next.body.permitted ?? false, next.body.decision ?? next.status]).to.deep.equal([false, "block"]);
        }
      } finally {
        await own.stop();
      }
    });
  });

  describe("and states a capability", () => {
    it("cannot call its action weaker than its operator does", async () => {
      const { status, type, body } = await world.ask(path, shell("rm -r /", { capability: "read" }));
      expect([status, type]).to.deep.equal([400, "application/problem+json"]);
      expect(body.detail).to.equal(
        "invalid params: expected `capability` to be one of execute, approve, deploy, delete, got `read`: only `hooks.capabilities` of the gateway can state a weaker one",
      );
    });

    it("can call it stronger", async () => {
      const { body } = await world.ask(path, shell("shred notes", { capability: "delete" }));
      expect(body.decision).to.equal("block");
    });

    it("has that of the operator's statement for this protocol, tool and target alone", async () => {
      const sql = { protocol: "sql", tool: "query", target: "analytics", arguments: { statement: "select 1" } };
      const decisions: unknown[] = [];
      for (const over of [{}, { target: "production" }, { tool: "query2" }, { protocol: "mcp" }]) {
        decisions.push((await world.ask(path, { ...sql, ...over })).body.decision);
      }
      expect(decisions).to.deep.equal(["allow", "review", "review", "review"]);
    });
  });

  const faults: readonly [string, object | string, string][] = [
    ["no JSON", "{", "malformed JSON"],
    ["no object", "[]", "expected the body to be an object, got"],
    [
      "an unknown protocol",
      shell("ls", { protocol: "model" }),
      "expected `protocol` to be one of http, shell, sql, git, mcp, got `model`",
    ],
    [
      "no tool",
      { protocol: "mcp", target: "a", arguments: {} },
      "expected `tool` (a text of 1 to 512 characters) in the body, got nothing",
    ],
    [
      "a member nobody knows",
      shell("ls", { capabilty: "read" }),
      "expected only `protocol`, `tool`, `target`, `capability`, `arguments`, `wait_ms` in the body, got `capabilty`",
    ],
    [
      "a wait that is too long",
      shell("ls", { wait_ms: 600_001 }),
      "expected `wait_ms` to be a whole number of milliseconds, 0 to 600000, got `600001`",
    ],
    [
      "arguments of another protocol",
      shell("ls", { protocol: "git" }),
      "expected `args` (a text that is not empty, or a list of 1 to 4096 texts) in the arguments, got nothing",
    ],
    [
      "no command",
      { protocol: "shell", tool: "sh", target: "a", arguments: { cwd: "/" } },
      "expected `command` (a text that is not empty, or a list of 1 to 4096 texts) in the arguments, got nothing",
    ],
    [
      "an empty command",
      shell(""),
      "expected `command` to be a text that is not empty, or a list of 1 to 4096 texts, got 0 characters",
    ],
    [
      "a statement that is no text",
      { protocol: "sql", tool: "q", target: "a", arguments: { statement: 1 } },
      "expected `statement` to be a text that is not empty, got `1`",
    ],
    [
      "a dialect nobody knows",
      { protocol: "sql", tool: "q", target: "a", arguments: { statement: "x", dialect: "db2" } },
      "expected `dialect` to be one of postgresql, mysql, sqlite, mssql, got `db2`",
    ],
    [
      "a method that is none",
      { protocol: "http", tool: "q", target: "a", arguments: { url: "http://a/", method: "get" } },
      "expected `method` to be a method of HTTP in capital letters, got `get`",
    ],
  ];

  for (const [what, body, detail] of faults) {
    it(`is told what is wrong about ${what}`, async () => {
      const answer = await world.ask(path, body, { label: "faults" });
      expect([answer.status, answer.type]).to.deep.equal([400, "application/problem+json"]);
      expect(answer.body.detail).to.include(detail);
      expect(await records("faults")).to.deep.equal([]);
    });
  }

  it("needs a key", async () => {
    const { status, body } = await world.ask(path, shell("ls"), { key: "wrong" });
    expect([status, body.code]).to.deep.equal([401, "KEY_UNKNOWN"]);
  });
});

describe("an agent that asks a gateway where `hooks.max_wait_seconds` is 0", () => {
  it("is answered at once", async () => {
    const world = await openAskingWorld("hooks: { max_wait_seconds: 0 }");
    try {
      const asked = await world.ask(path, shell("wait", { wait_ms: 600_000 }));
      expect([asked.body.permitted, approvalOf(asked).state]).to.deep.equal([false, "pending"]);
    } finally {
      await world.stop();
    }
  });
});
