import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { send } from "../../support/wire.ts";

const canary = "canary-2f61c0de-3a77";

describe("the log", () => {
  let upstream: Recorder;
  let gateway: RunningGateway;
  let lines: readonly Record<string, unknown>[];

  /** Whatever may carry a key or a secret is sent once, well and badly formed; then the log is read whole. */
  before(async () => {
    upstream = await startRecorder();
    gateway = await startGateway({
      config: siteConfig({ remoteUrl: upstream.url, more: "log: { level: debug }" }),
      files: siteFiles(),
    });
    const agent = new Agent(gateway.url, siteKey);
    await agent.call("echo", { password: canary });
    await agent.call("nobody_has_this", { password: canary });
    await agent.hangUp();
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"p":"${canary}"}}`;
    for (const [name, value] of [
      ["x-api-key", `${canary}-unknown-key-of-forty-characters`],
      ["authorization", `Bearer ${canary}`],
      ["authorization", `Basic ${canary}`],
      ["cookie", canary],
      ["x-api-key", siteKey],
    ] as const) {
      const headers = [[name, value] as const, ["content-type", "application/json"] as const];
      await send(gateway.url, { method: "POST", target: `/mcp?key=${canary}`, headers, body });
      await send(gateway.url, { method: "POST", target: "/mcp", headers, body });
      await send(gateway.adminUrl, { target: "/admin/v1/policies", headers });
    }
    await gateway.stop();
    await upstream.stop();
    lines = gateway
      .stderr()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  });

  it("is one JSON object a line, with a level, a time and a constant message", () => {
    expect(lines.length).to.be.above(8);
    for (const line of lines) {
      expect(line.level).to.be.oneOf(["debug", "info", "warn", "error"]);
      expect(line.time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(line.msg).to.be.a("string").and.not.match(/\d/);
    }
  });

  it("names each refusal by code and request, and its levels tell the caller's faults from ours", () => {
    const refusals = lines.filter(({ msg }) => msg === "request_refused");
    const codes = new Set(refusals.map(({ code }) => code));
    expect([...codes]).to.include.members(["KEY_UNKNOWN", "KEY_MISSING", "MALFORMED_JSON", "TOOL_UNKNOWN"]);
    for (const each of refusals) {
      expect(each.request_id).to.match(/^[0-9a-f-]{36}$/);
      expect(each.level).to.equal("info");
    }
  });

  it("has a line for each decision at `info`: what was decided about what, by which rule, and nothing more", () => {
    const decided = lines.filter(({ msg }) => msg === "action_decided");
    const [call] = decided.filter(({ tool }) => tool === "echo");
    expect(decided.filter(({ tool }) => tool === "echo")).to.have.length(1);
    expect(call).to.include({ level: "info", decision: "allow", target: "remote", dispatched: true, protocol: "mcp" });
    expect(call?.id).to.match(/^[0-9a-f-]{36}$/);
    expect(call?.session).to.match(/^session-v1-/);
    expect(Object.keys(call ?? {}).toSorted()).to.deep.equal(
      [
        ...["capability", "decision", "dispatched", "duration_us", "id", "level", "msg", "principal", "protocol"],
        ...["risk", "rule", "session", "target", "tenant", "time", "tool"],
      ].toSorted(),
    );
  });

  it("holds no key and no argument, good or bad", () => {
    const text = gateway.stdout() + gateway.stderr();
    expect(text).to.not.include(siteKey);
    expect(text).to.not.include(canary);
  });
});
