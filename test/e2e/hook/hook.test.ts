import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";
import { type AskingWorld, openAskingWorld } from "./asking-world.ts";

type Agent = "claude-code" | "codex" | "generic";

/** The documented payload of Claude Code. */
function claude(tool: string, input: object, session = "0d7c7f0e-claude"): JsonObject {
  return {
    session_id: session,
    transcript_path: "/home/dev/.claude/projects/x/0d7c7f0e.jsonl",
    cwd: "/srv/app",
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: tool,
    tool_input: input as JsonObject,
    tool_use_id: "toolu_01ABC",
  };
}

/** The documented payload of Codex. */
function codex(tool: string, input: object): JsonObject {
  const { transcript_path: _, ...rest } = claude(tool, input, "019a-codex");
  return { ...rest, turn_id: "1", model: "gpt-5", permission_mode: "bypassPermissions" };
}

function generic(command: string): JsonObject {
  return { protocol: "shell", tool: "sh", arguments: { command }, session_id: "generic" };
}

/** The words of an answer of Claude Code or Codex; undefined for silence. */
function said({ hookSpecificOutput }: JsonObject): readonly [unknown, string] | undefined {
  if (hookSpecificOutput === undefined) return undefined;
  const { permissionDecision, permissionDecisionReason } = hookSpecificOutput as JsonObject;
  return [permissionDecision, String(permissionDecisionReason)];
}

function approvalIn(text: string): string {
  return /Approval (apr_[0-9a-f]{32}) is pending/.exec(text)?.[1] ?? "";
}

describe("POST /v1/hooks/{agent}", () => {
  let world: AskingWorld;

  before(async () => {
    world = await openAskingWorld();
  });

  after(() => world?.stop());

  beforeEach(() => world.reviewer.clear());

  /** The protocol, tool, target, capability and arguments of the last decision of a session. */
  async function lastAction(label: string): Promise<unknown> {
    const found = await world.evidence.recordsOf((each) => each === label);
    const last = found.filter(({ kind }) => kind === "decision").toSorted((a, b) => b.seq - a.seq)[0]?.action;
    return [last?.protocol, last?.tool, last?.target, last?.capability];
  }

  const tools: readonly [Agent, string, object, readonly [string, string, string, string]][] = [
    ["claude-code", "Bash", { command: "make" }, ["shell", "Bash", "claude-code", "execute"]],
    ["claude-code", "Read", { file_path: "/srv/app/a.ts" }, ["mcp", "Read", "claude-code", "read"]],
    ["claude-code", "Grep", { pattern: "x" }, ["mcp", "Grep", "claude-code", "read"]],
    ["claude-code", "Write", { file_path: "/srv/a", content: "x" }, ["mcp", "Write", "claude-code", "write"]],
    [
      "claude-code",
      "WebFetch",
      { url: "https://a.example/", prompt: "x" },
      ["http", "WebFetch", "claude-code", "network"],
    ],
    ["claude-code", "WebSearch", { query: "x" }, ["mcp", "WebSearch", "claude-code", "network"]],
    ["claude-code", "Agent", { prompt: "x" }, ["mcp", "Agent", "claude-code", "execute"]],
    ["claude-code", "mcp__notes__read_note", { title: "x" }, ["mcp", "read_note", "claude-code/notes", "execute"]],
    ["claude-code", "constructor", {}, ["mcp", "constructor", "claude-code", "execute"]],
    ["codex", "Bash", { command: "make" }, ["shell", "Bash", "codex", "execute"]],
    [
      "codex",
      "apply_patch",
      { command: "*** Begin Patch\n*** Update File: a.ts\n" },
      ["mcp", "apply_patch", "codex", "write"],
    ],
    [
      "codex",
      "apply_patch",
      { command: "*** Begin Patch\n*** Delete File: a.ts\n" },
      ["mcp", "apply_patch", "codex", "delete"],
    ],
    ["codex", "mcp__notes__read_note", {}, ["mcp", "read_note", "codex/notes", "execute"]],
    ["codex", "view_image", {}, ["mcp", "view_image", "codex", "execute"]],
  ];
  for (const [index, [agent, tool, input, action]] of tools.entries()) {
    it(`judges ${tool} of ${agent} as ${action.join(" ")}`, async () => {
      const label = `tools-${index}`;
      const payload = { ...(agent === "codex" ? codex(tool, input) : claude(tool, input)), session_id: label };
      const { status } = await world.ask(`/v1/hooks/${agent}`, payload);
      expect([status, await lastAction(label)]).to.deep.equal([200, action]);
    });
  }

  it("allows Claude Code what policy allows, and denies it the rest with the reason", async () => {
    const read = await world.ask("/v1/hooks/claude-code", claude("Read", { file_path: "/srv/app/a.ts" }));
    expect([read.decision, said(read.body)?.[0]]).to.deep.equal(["allow", "allow"]);
    const held = await world.ask("/v1/hooks/claude-code", claude("Bash", { command: "make" }));
    expect([held.decision, said(held.body)?.[0]]).to.deep.equal(["review", "deny"]);
    expect(said(held.body)?.[1]).to.match(
      /^Held for review: it may do anything \(rule test\.hold\)\. Approval apr_\w+ is pending .* To approve: `gateway approvals approve apr_\w+`\. Decision \S+\.$/,
    );
  });

  it("is silent to Codex where policy allows, because it takes every other word for a failed hook", async () => {
    const search = await openAskingWorld(
      "hooks: { capabilities: [{ protocol: shell, tool: Bash, target: codex, capability: read }] }",
    );
    try {
      const { decision, body } = await search.ask("/v1/hooks/codex", codex("Bash", { command: "ls" }));
      expect([decision, body]).to.deep.equal(["allow", {}]);
    } finally {
      await search.stop();
    }
    const { body } = await world.ask("/v1/hooks/codex", codex("Bash", { command: "ls" }));
    expect(said(body)?.[0]).to.equal("deny");
    expect(Object.keys(body.hookSpecificOutput as JsonObject)).to.deep.equal([
      "hookEventName",
      "permissionDecision",
      "permissionDecisionReason",
    ]);
  });

  it("runs an approved call once, however the model describes it, and not in another session", async () => {
    const path = "/v1/hooks/claude-code";
    const held = await world.ask(path, claude("Bash", { command: "make x", description: "Build" }, "s1"));
    await world.reviewer.approve(approvalIn(said(held.body)?.[1] ?? ""));
    const other = await world.ask(path, claude("Bash", { command: "make x", description: "Build" }, "s2"));
    const retry = await world.ask(path, claude("Bash", { command: "make x", description: "Builds it" }, "s1"));
    const again = await world.ask(path, claude("Bash", { command: "make x", description: "Build" }, "s1"));
    expect([other, retry, again].map(({ decision }) => decision)).to.deep.equal(["review", "allow", "review"]);
  });

  it("waits for the review as long as it is asked to", async () => {
    const asked = world.ask("/v1/hooks/claude-code?wait_ms=20000", claude("Bash", { command: "wait" }));
    const { id } = await world.reviewer.awaitPending();
    await world.reviewer.approve(id);
    expect((await asked).decision).to.equal("allow");
  });

  const faults: readonly [string, object | string, string][] = [
    ["no JSON", "nonsense", "MALFORMED_JSON"],
    ["no object", "[]", "INVALID_PARAMS"],
    ["another event", { ...claude("Bash", {}), hook_event_name: "PostToolUse" }, "INVALID_PARAMS"],
    ["no tool", { ...claude("Bash", {}), tool_name: 1 }, "INVALID_PARAMS"],
    ["a command that is no text", claude("Bash", { command: { a: 1 } }), "INVALID_PARAMS"],
    ["no session", { ...claude("Bash", { command: "ls" }), session_id: "a b" }, "INVALID_PARAMS"],
  ];
  for (const [what, body, code] of faults) {
    it(`denies ${what} with status 200, because agents go on after every other [S90]`, async () => {
      for (const agent of ["claude-code", "codex"] as const) {
        const response = await fetch(`${world.gateway.url}/v1/hooks/${agent}`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": world.key },
          body: typeof body === "string" ? body : JSON.stringify(body),
        });
        expect([response.status, response.headers.get("x-gateway-error")]).to.deep.equal([200, code]);
        expect(said((await response.json()) as JsonObject)?.[0]).to.equal("deny");
      }
    });
  }

  it("denies a wrong key, a wait that is none, and refuses an agent that it does not know", async () => {
    const wrong = await world.ask("/v1/hooks/claude-code", claude("Read", {}), { key: "wrong" });
    expect([wrong.status, wrong.decision, said(wrong.body)?.[0]]).to.deep.equal([200, "block", "deny"]);
    const wait = await world.ask("/v1/hooks/claude-code?wait_ms=soon", claude("Read", { file_path: "/a" }));
    expect([wait.decision, said(wait.body)?.[0]]).to.deep.equal(["block", "deny"]);
    const unknown = await world.ask("/v1/hooks/nobody", claude("Read", {}));
    expect([unknown.status, unknown.body.code]).to.deep.equal([404, "NOT_FOUND"]);
  });
});

describe("gateway hook", () => {
  let world: AskingWorld;

  before(async () => {
    world = await openAskingWorld();
  });

  after(() => world?.stop());

  beforeEach(() => world.reviewer.clear());

  interface HookRun {
    readonly url?: string;
    readonly key?: string;
    readonly wait?: number;
  }

  function hook(agent: Agent, payload: object | string, run: HookRun = {}): Promise<Finished> {
    const { url = world.gateway.url, key = world.key, wait = 0 } = run;
    const args = ["hook", agent, "--url", url, "--wait", String(wait)];
    return runGateway(args, { GATEWAY_API_KEY: key }, typeof payload === "string" ? payload : JSON.stringify(payload));
  }

  it("prints an allowed call in the form of each agent, and ends with 0 [S90]", async () => {
    const read = await hook("claude-code", claude("Read", { file_path: "/srv/app/a.ts" }));
    expect([read.code, read.stderr, said(JSON.parse(read.stdout))?.[0]]).to.deep.equal([0, "", "allow"]);
    const http = { protocol: "http", tool: "get", arguments: { url: "https://a.example/" }, session_id: "g" };
    const held = await hook("generic", http);
    expect([held.code, JSON.parse(held.stdout).decision]).to.deep.equal([3, "ask"]);
  });

  it("prints a held call, and lets its retry through once when it is approved", async () => {
    const held = await hook("generic", generic("make"));
    const { decision, approval } = JSON.parse(held.stdout);
    expect([held.code, decision, approval.state]).to.deep.equal([3, "ask", "pending"]);
    await world.reviewer.approve(approval.id);
    const retry = await hook("generic", generic("make"));
    expect([retry.code, JSON.parse(retry.stdout).decision]).to.deep.equal([0, "allow"]);
    expect((await hook("generic", generic("make"))).code).to.equal(3);
    const silent = await hook("codex", codex("Bash", { command: "make" }));
    expect([silent.code, said(JSON.parse(silent.stdout))?.[0]]).to.deep.equal([0, "deny"]);
  });

  it("waits for the review, and prints a denial as a denial", async () => {
    const asked = hook("codex", codex("Bash", { command: "make wait" }), { wait: 60 });
    await world.reviewer.approve((await world.reviewer.awaitPending()).id);
    expect(await asked).to.deep.equal({ code: 0, stdout: "", stderr: "" });
    const denied = hook("claude-code", claude("Bash", { command: "make no" }), { wait: 60 });
    await world.reviewer.deny((await world.reviewer.awaitPending()).id, "not today");
    const { code, stdout } = await denied;
    expect([code, said(JSON.parse(stdout))?.[0]]).to.deep.equal([0, "deny"]);
    expect(stdout).to.include("not today");
    const blocked = await hook("generic", { ...generic("x"), capability: "delete" });
    expect([blocked.code, JSON.parse(blocked.stdout).decision]).to.deep.equal([2, "deny"]);
  });

  it("says that a call is still held when the time is over", async () => {
    const { code, stdout } = await hook("claude-code", claude("Bash", { command: "make late" }), { wait: 1 });
    expect([code, approvalIn(stdout) === ""]).to.deep.equal([0, false]);
  });

  describe("where the gateway cannot be asked", () => {
    let server: Server;
    let fake: string;
    /** What the server that is no gateway answers; undefined: nothing. */
    let answer:
      | { readonly status?: number; readonly headers?: Record<string, string>; readonly body: string }
      | undefined;

    before(async () => {
      server = createServer((request, response) => {
        request.resume();
        if (answer !== undefined) response.writeHead(answer.status ?? 200, answer.headers).end(answer.body);
      }).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.once("listening", resolve));
      fake = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });

    after(() => {
      server.closeAllConnections();
      server.close();
    });

    const payloads: Readonly<Record<Agent, JsonObject>> = {
      "claude-code": claude("Read", { file_path: "/a" }),
      codex: codex("Bash", { command: "ls" }),
      generic: generic("ls"),
    };

    /** Each agent's hook refuses with 2 and a reason, on standard error and in its form. */
    async function expectRefusals(reason: string, run: HookRun, payload?: string): Promise<void> {
      for (const agent of ["claude-code", "codex", "generic"] as const) {
        const { code, stdout, stderr } = await hook(agent, payload ?? payloads[agent], run);
        expect([code, stderr.includes(reason)], `${agent}: ${stdout}${stderr}`).to.deep.equal([2, true]);
        const body = JSON.parse(stdout) as JsonObject;
        expect(agent === "generic" ? body.decision : said(body)?.[0]).to.equal("deny");
      }
    }

    it("refuses with 2 when nobody answers at the port [S90]", () =>
      expectRefusals("gateway unreachable", { url: "http://127.0.0.1:9" }));

    it("refuses with 2 for a wrong key, and for none", async () => {
      await expectRefusals("unknown key", { key: "wrong" });
      await expectRefusals("set GATEWAY_API_KEY", { key: "" });
    });

    it("refuses with 2 what is no JSON, and what is too large", async () => {
      await expectRefusals("malformed JSON", {}, "nonsense");
      await expectRefusals("at most 8388608 bytes", {}, "x".repeat(8_388_609));
    });

    it("refuses with 2 when the answer does not come in time [S90]", async () => {
      answer = undefined;
      const { code, stdout, stderr } = await hook("claude-code", payloads["claude-code"], { url: fake });
      expect([code, said(JSON.parse(stdout))?.[0]]).to.deep.equal([2, "deny"]);
      expect(stderr).to.include("it took too long");
    });

    const allow = JSON.stringify({
      hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", permissionDecisionReason: "yes" },
      decision: "allow",
      reason: "yes",
    });
    const nonsense: readonly [string, NonNullable<typeof answer>][] = [
      ["no JSON", { body: "<html>", headers: { "x-gateway-decision": "allow" } }],
      ["an empty object without the header", { body: "{}" }],
      ["a permission without the header", { body: allow }],
      ["a permission with another header", { body: allow, headers: { "x-gateway-decision": "block" } }],
      ["a header that is none", { body: allow, headers: { "x-gateway-decision": "yes" } }],
      ["a list", { body: "[]", headers: { "x-gateway-decision": "allow" } }],
      ["another status", { status: 500, body: allow, headers: { "x-gateway-decision": "allow" } }],
      ["a redirect", { status: 302, body: "", headers: { location: "http://127.0.0.1:9/" } }],
      ["more than it may", { body: " ".repeat(70_000), headers: { "x-gateway-decision": "allow" } }],
    ];
    for (const [what, given] of nonsense) {
      it(`refuses with 2 when the answer is ${what} [S90]`, async () => {
        answer = given;
        await expectRefusals("so the tool does not run", { url: fake });
      });
    }
  });
});
