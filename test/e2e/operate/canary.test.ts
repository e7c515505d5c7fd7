import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { canaryOf, entriesIn, formsOf } from "../../support/canary.ts";
import { filesWith } from "../../support/disk-search.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { LiveClient } from "../live/live-client.ts";

/** A secret for each way in; each can be told from the others where it turns up. */
const canaries = [
  "argument-value",
  "argument-name",
  "tool-name",
  "method",
  "header",
  "cookie",
  "wrong-key",
  "bearer",
  "query",
  "session-label",
  "meta",
  "progress-token",
  "broken-json",
  "answer",
  "tool-error",
  "rpc-error",
  "rpc-error-data",
  "http-error",
  "nonsense",
  "resource",
  "prompt",
] as const;
type Canary = (typeof canaries)[number];

function canary(name: Canary): string {
  return canaryOf(name);
}

/** What the upstream does when asked for one of these tools: each answer carries a secret. */
const answers: Readonly<Record<string, (id: string) => { readonly status: number; readonly body: string }>> = {
  answer: (id) => result(id, { content: [{ type: "text", text: canary("answer") }] }),
  failed: (id) => result(id, { isError: true, content: [{ type: "text", text: canary("tool-error") }] }),
  refused: (id) => ({
    status: 200,
    body: `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"${canary("rpc-error")}","data":{"k":"${canary("rpc-error-data")}"}}}`,
  }),
  broken: () => ({ status: 500, body: canary("http-error") }),
  nonsense: () => ({ status: 200, body: `{${canary("nonsense")}` }),
};

function result(id: string, value: object): { status: number; body: string } {
  return { status: 200, body: `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(value)}}` };
}

/** `hold`: called for each call of a tool, which then gets no answer. */
function startUpstream(hold?: () => void): Promise<Server> {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { id, method, params } = JSON.parse(text || "{}") as {
      id?: number;
      method?: string;
      params?: { name?: string };
    };
    if (hold !== undefined && method === "tools/call") return hold();
    const { status, body } = reply(JSON.stringify(id), method, params?.name);
    response.writeHead(id === undefined ? 202 : status, { "content-type": "application/json" });
    response.end(id === undefined ? undefined : body);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function reply(id: string, method: string | undefined, tool = ""): { status: number; body: string } {
  const serverInfo = { name: "leaky", version: "1" };
  if (method === "initialize") {
    return result(id, { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo });
  }
  const tools = Object.keys(answers).map((name) => ({ name, inputSchema: { type: "object" } }));
  if (method === "tools/list") return result(id, { tools });
  return answers[tool]?.(id) ?? { status: 404, body: "" };
}

for (const storeValues of [true, false]) {
  describe(`secrets in every input, with store_values: ${storeValues}`, () => {
    let upstream: Server;
    let gateway: RunningGateway;
    let folder: string;
    let metrics: string;
    /** Heard on `/v1/ws`. */
    let watched: string;
    let backup: string;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "canary-"));
      upstream = await startUpstream();
      const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/mcp`;
      const evidence = `evidence: { store_values: ${storeValues}, store_labels: false }`;
      const more = `${evidence}\nresilience: { enabled: true }\nlog: { level: debug }`;
      const config = siteConfig({ remoteUrl: url, role: "admin", more });
      gateway = await startGateway({ folder, config, files: siteFiles() });
      const watcher = await new LiveClient(gateway.url, { key: siteKey }).open();
      watcher.say("subscribe", { channels: ["decisions", "approvals", "risk", "metrics"] });
      await sendEverything(gateway);
      metrics = (await send(gateway.metricsUrl, { target: "/metrics" })).body;
      await watcher.hear(({ payload }) => payload.channel === "metrics");
      watched = JSON.stringify(watcher.heard);
      watcher.socket.terminate();
      backup = await backUp(gateway);
      await gateway.stop();
    });

    after(async () => {
      upstream.close();
      await rm(folder, { recursive: true });
    });

    for (const name of canaries) {
      it(`the ${name}: in no file of the data folder, no log line, no metric, no frame, no backup [S66]`, async () => {
        const said = gateway.stdout() + gateway.stderr();
        for (const form of formsOf(canary(name))) {
          expect(await filesWith(join(folder, "data"), form), "data").to.deep.equal([]);
          expect(
            said.split("\n").filter((line) => line.includes(form)),
            "log",
          ).to.deep.equal([]);
          expect(metrics.includes(form), "metrics").to.equal(false);
          expect(watched.includes(form), "live").to.equal(false);
          expect(backup.includes(form), "backup").to.equal(false);
        }
      });
    }

    it("are not what the live feed and the backup are empty for", () => {
      expect(watched).to.include('"tool":"answer"').and.include('"channel":"metrics"');
      expect(backup).to.include('\\"kind\\":\\"outcome\\"').and.include('"public_key"');
    });

    it("the gateway's own key: nowhere [R2.1-9, S66]", async () => {
      expect(await filesWith(join(folder, "data"), siteKey)).to.deep.equal([]);
      expect(gateway.stdout() + gateway.stderr() + metrics).to.not.include(siteKey);
    });

    it("nothing of them in the store's entries, however its files are packed [S66]", async () => {
      const entries = await entriesIn(join(folder, "data"));
      expect(entries).to.include('\\"kind\\":\\"outcome\\"');
      for (const name of canaries) expect(entries.includes(canary(name)), name).to.equal(false);
    });
  });
}

/** The lines of a backup, once it is whole. */
async function backUp({ adminUrl, folder }: RunningGateway): Promise<string> {
  const environment = { GATEWAY_API_KEY: siteKey, GATEWAY_ADMIN_URL: adminUrl };
  const { stdout, stderr } = await runGateway(["backup", "create"], environment);
  if (stdout === "") throw new Error(stderr);
  return readFile(join(folder, "backups", stdout.trim()), "utf8");
}

/** Every canary once, in what is good and in what is refused. */
async function sendEverything(gateway: RunningGateway): Promise<void> {
  const agent = new Agent(gateway.url, siteKey, canary("session-label"));
  const args = { [canary("argument-name")]: canary("argument-value") };
  for (const tool of [...Object.keys(answers), canary("tool-name")]) await agent.call(tool, args);
  const _meta = { "com.example/secret": canary("meta"), progressToken: canary("progress-token") };
  await agent.send("tools/call", { name: "answer", arguments: args, _meta });
  await agent.send(canary("method"));
  await agent.send("resources/read", { uri: `note://${canary("resource")}` });
  await agent.send("prompts/get", { name: canary("prompt") });
  await agent.hangUp();
  const good: HeaderList = [
    ["content-type", "application/json"],
    ["x-api-key", siteKey],
  ];
  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"answer"}}';
  const posts: readonly (readonly [HeaderList, string, string])[] = [
    [[...good, ["x-custom", canary("header")], ["cookie", `s=${canary("cookie")}`]], "/mcp", call],
    [[...good, ["mcp-session-id", canary("header")]], "/mcp", call],
    [[["x-api-key", canary("wrong-key")]], "/mcp", call],
    [[["authorization", `Bearer ${canary("bearer")}`]], "/mcp", call],
    [good, `/mcp?key=${canary("query")}`, call],
    [good, "/mcp", `{"jsonrpc":"2.0","${canary("broken-json")}":"${canary("broken-json")}`],
    [good, "/mcp", `{"jsonrpc":${canary("broken-json")}}`],
    [good, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"\`${canary("method")}\`"}`],
    [good, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"a\`${canary("method")}\`b"}`],
    [good, "/mcp", `{"jsonrpc":"2.0","${canary("broken-json")}":1,"${canary("broken-json")}":2}`],
  ];
  for (const [headers, target, body] of posts) await send(gateway.url, { method: "POST", target, headers, body });
  for (const target of [`/admin/v1/${canary("query")}`, `/admin/v1/evidence/sessions/${canary("query")}`]) {
    await send(gateway.adminUrl, { target: `${target}?limit=${canary("query")}`, headers: good });
  }
}

describe("secrets of a gateway that an error ends which nobody caught", () => {
  for (const how of ["thrown", "rejected"]) {
    it(`are not in what it says as it dies, where that was ${how} [S66]`, async () => {
      const secret = canary("argument-value");
      const hook = fileURLToPath(new URL("../../fixture/uncaught-error.js", import.meta.url));
      const env = { NODE_OPTIONS: `--import ${hook}`, CANARY: secret, HOW: how };
      const gateway = await startGateway({ config: siteConfig({}), files: siteFiles(), env });
      try {
        const ended = once(gateway.process, "exit");
        gateway.process.kill("SIGUSR2");
        expect((await ended)[0]).to.equal(1);
        const last = gateway.stderr().trim().split("\n").at(-1) ?? "";
        const said = JSON.parse(last) as { level: string; msg: string; error: string; stack: string[] };
        expect([said.level, said.msg]).to.deep.equal(["error", "process_crashed"]);
        expect(said.error).to.equal("RangeError");
        expect(said.stack[0]).to.include("uncaught-error.js");
        expect(gateway.stdout() + gateway.stderr()).to.not.include(secret);
      } finally {
        await gateway.kill9();
        await rm(gateway.folder, { recursive: true, force: true });
      }
    });
  }
});

describe("secrets of a gateway that runs out of memory", () => {
  it("are not in what it says as it dies, and not in the folder [S66]", async () => {
    const folder = await mkdtemp(join(tmpdir(), "canary-crash-"));
    const hook = fileURLToPath(new URL("../../fixture/memory-fill.js", import.meta.url));
    // Far more than a start and these calls need: it ends where the hook says.
    const env = { NODE_OPTIONS: `--import ${hook} --max-old-space-size=128` };
    let inFlight = 0;
    const upstream = await startUpstream(() => inFlight++);
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/mcp`;
    const gateway = await startGateway({ folder, config: siteConfig({ remoteUrl: url }), files: siteFiles(), env });
    const agents = Array.from({ length: 8 }, () => new Agent(gateway.url, siteKey));
    try {
      const ended = once(gateway.process, "exit");
      const args = { [canary("argument-name")]: Array.from({ length: 500 }, () => canary("argument-value")) };
      const calls = Promise.allSettled(agents.map((agent) => agent.call("answer", args)));
      while (inFlight < agents.length) await pause(5);
      gateway.process.kill("SIGUSR2");
      const [, signal] = (await ended) as [number | null, string | null];
      await calls;
      expect(signal).to.equal("SIGABRT");
      expect(gateway.stderr()).to.include("heap out of memory");
      for (const text of [canary("argument-value"), canary("argument-name"), siteKey]) {
        expect(gateway.stdout() + gateway.stderr()).to.not.include(text);
        expect(await filesWith(join(folder, "data"), text)).to.deep.equal([]);
      }
    } finally {
      await Promise.all(agents.map((agent) => agent.hangUp()));
      await gateway.kill9();
      upstream.closeAllConnections();
      upstream.close();
      await rm(folder, { recursive: true });
    }
  });
});
