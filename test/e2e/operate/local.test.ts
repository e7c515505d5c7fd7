import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { awaitReady, type ReadyProcess } from "../../support/ready-line.ts";
import { dial, send } from "../../support/wire.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

describe("gateway serve without a configuration file [R1.1-29]", () => {
  let data: string;
  let gateway: ReadyProcess;
  let key: string;
  let agentKey: string;

  before(async () => {
    data = join(await mkdtemp(join(tmpdir(), "gateway-local-")), "data");
    gateway = await startLocal(data);
    key = (await readFile(join(data, "operator.key"), "utf8")).trim();
    agentKey = (await readFile(join(data, "agent.key"), "utf8")).trim();
  });

  after(async () => {
    await gateway.stop("SIGTERM", 10_000);
    await rm(join(data, ".."), { recursive: true });
  });

  it("makes a key for the agent and one for the operator, which only their owner can read", async () => {
    expect(agentKey).not.to.equal(key);
    for (const name of ["agent.key", "operator.key"]) {
      expect((await readFile(join(data, name), "utf8")).trim()).to.match(/^agw_[A-Za-z0-9_-]{43}$/);
      const { mode } = await stat(join(data, name));
      expect((mode & 0o777).toString(8)).to.equal("600");
    }
    expect(((await stat(data)).mode & 0o777).toString(8)).to.equal("700");
  });

  it("listens on 127.0.0.1 and nowhere else [S11]", async () => {
    for (const name of ports) {
      const port = gateway.port(name);
      (await dial(`http://127.0.0.1:${port}`)).destroy();
      const elsewhere = await dial(`http://127.0.0.2:${port}`).then(
        () => "accepted",
        (error: NodeJS.ErrnoException) => error.code,
      );
      expect(elsewhere, name).to.equal("ECONNREFUSED");
    }
  });

  it("serves the demo upstream under the baseline pack, to who has the key [R1.1-25]", async () => {
    const stranger = new Agent(urlOf("gateway_port"), "agw_not-the-key-that-was-made-at-the-start-00");
    expect((await stranger.call("list_notes")).status).to.equal(401);
    await stranger.hangUp();
    const agent = new Agent(urlOf("gateway_port"), agentKey);
    const results = [];
    for (const [tool, args] of calls) results.push((await agent.call(tool, args)).result);
    await agent.hangUp();
    expect(results.map((each) => each?.isError ?? false)).to.deep.equal([false, true, true]);
    expect(results[0]?.content?.[0]?.text).to.include("welcome");
    expect(results[1]?.content?.[0]?.text).to.match(/^Held for review/);
    expect(results[2]?.content?.[0]?.text).to.match(/^Blocked by policy/);
  });

  it("keeps the evidence of it [R1.1-27]", async () => {
    const reader = new EvidenceReader(urlOf("admin_port"), key);
    const records = await reader.recordsOf();
    expect(records.map(({ action, effect }) => [action.tool, effect])).to.deep.equal([
      ["list_notes", "dispatched"],
      ["list_notes", "success"],
      ["write_note", "not_dispatched"],
      ["delete_note", "not_dispatched"],
    ]);
    expect(await reader.verify()).to.include({ ok: true, tenant: "local" });
  });

  it("lets the operator approve what the agent asked for, and not the agent", async () => {
    const agent = new Agent(urlOf("gateway_port"), agentKey);
    const [, [tool, args]] = calls;
    const held = (await agent.call(tool, args)).result as { _meta?: Record<string, { approval: { id: string } }> };
    const { id } = Object.values(held._meta ?? {})[0]?.approval ?? { id: "" };
    const target = `/admin/v1/approvals/${id}/approve`;
    const review = (by: string) => {
      const headers = [
        ["x-api-key", by],
        ["content-type", "application/json"],
      ] as const;
      return send(urlOf("admin_port"), { method: "POST", target, headers, body: "{}" });
    };
    expect((await review(agentKey)).status).to.equal(403);
    expect((await agent.call(tool, args)).result?.isError).to.equal(true);
    expect((await review(key)).status).to.equal(200);
    expect((await agent.call(tool, args)).result?.isError ?? false).to.equal(false);
    await agent.hangUp();
  });

  it("answers for the model `mock` in both model APIs, under the baseline pack [R1.1-24, R2.9-2]", async () => {
    const ask = async (path: string, body: object): Promise<{ status: number; body: string }> => {
      const headers = [
        ["x-api-key", agentKey],
        ["content-type", "application/json"],
      ] as const;
      const messages = [{ role: "user", content: "Hello" }];
      const text = JSON.stringify({ model: "mock", messages, ...body });
      return send(urlOf("gateway_port"), { method: "POST", target: path, headers, body: text });
    };
    const chat = await ask("/v1/chat/completions", {});
    expect(JSON.parse(chat.body)).to.have.nested.property("choices[0].message.content", "You said: Hello");
    const tools = [{ name: "Bash", input_schema: { type: "object" } }];
    const messages = await ask("/v1/messages", { max_tokens: 9, tools });
    expect(JSON.parse(messages.body)).to.have.nested.property("content[0].text", "You said: Hello");
    const streamed = await ask("/v1/chat/completions", { stream: true });
    expect(streamed.body).to.match(/^data: \{.*\n\ndata: \[DONE\]\n\n/s);
    const unknown = await ask("/v1/chat/completions", { model: "other" });
    expect([unknown.status, (JSON.parse(unknown.body) as { error: { code: string } }).error.code]).to.deep.equal([
      404,
      "model_not_found",
    ]);
  });

  it("serves metrics on the admin port [R1.1-28]", async () => {
    const headers = [["x-api-key", key]] as const;
    const { status, body } = await send(urlOf("admin_port"), { target: "/metrics", headers });
    expect(status).to.equal(200);
    expect(body).to.include("gateway_decisions_total{");
  });

  it("prints the keys at the first start only, and keeps them", async () => {
    for (const each of [key, agentKey]) expect(gateway.stderr().split(each)).to.have.length(2);
    for (const each of [key, agentKey]) expect(gateway.stdout()).to.not.include(each);
    expect(await gateway.stop("SIGTERM", 10_000)).to.equal(0);
    gateway = await startLocal(data);
    for (const each of [key, agentKey]) expect(gateway.stderr() + gateway.stdout()).to.not.include(each);
    const agent = new Agent(urlOf("gateway_port"), agentKey);
    expect((await agent.call("list_notes")).status).to.equal(200);
    await agent.hangUp();
  });

  function urlOf(name: string): string {
    return `http://127.0.0.1:${gateway.port(name)}`;
  }
});

const ports = ["gateway_port", "admin_port", "metrics_port"] as const;
const calls = [
  ["list_notes", {}],
  ["write_note", { title: "a", text: "b" }],
  ["delete_note", { title: "welcome" }],
] as const;

/** Local mode takes three ports in a row; where one is taken, it tries elsewhere. */
async function startLocal(data: string, attempts = 5): Promise<ReadyProcess> {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  const child = spawn(process.execPath, [program, "serve", "--data", data, "--port", String(port)], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  try {
    return await awaitReady(child, { event: "ready" }, 60_000);
  } catch (error) {
    if (attempts === 1 || !(error as Error).message.includes("another process listens there")) throw error;
    return startLocal(data, attempts - 1);
  }
}
