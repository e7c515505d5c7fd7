import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { JsonObject } from "../../../../core/action/json.ts";
import {
  type JsonRpcNotification,
  type JsonRpcRequest,
  type McpEra,
  metaKey,
} from "../../../../core/action/json-rpc.ts";
import type { StdioConfig, UpstreamConfig } from "../../../../core/config/gateway-config.ts";
import { demoUpstream } from "../../../../core/upstream/demo/upstream.ts";
import type { UpstreamGroup } from "../../../../core/upstream/group.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";
import { freePort } from "../../../support/free-port.ts";
import { awaitReady } from "../../../support/ready-line.ts";
import {
  call,
  closeAll,
  http,
  listener,
  onCleanup,
  openFleet,
  openGroup,
  scope,
  settings,
  textOf,
  until,
} from "../fixture.ts";

const packages = join(repositoryRoot, "node_modules/@modelcontextprotocol");

function program(path: string, args: readonly string[] = []): StdioConfig {
  return { ...settings, transport: "stdio", command: process.execPath, args: [path, ...args], env: {} };
}

const everything = (mode = "stdio"): StdioConfig => program(join(packages, "server-everything/dist/index.js"), [mode]);

/** Starts the conformance fixture: one endpoint, both eras. */
async function startConformanceServer(): Promise<string> {
  const script = fileURLToPath(new URL("../../../fixture/conformance-server.js", import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const ready = await awaitReady(child, { ready: true }, 60_000);
  onCleanup(async () => void (await ready.stop("SIGTERM", 5_000)));
  return `http://127.0.0.1:${ready.port("port")}/mcp`;
}

/** Starts server-everything on a port of its own; it says on standard error when it listens. */
async function startEverything(mode: string, port: number): Promise<void> {
  const { command, args } = everything(mode);
  const child = spawn(command, [...args], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onCleanup(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString("utf8");
  });
  await until(() => said.includes("port"), 10_000);
}

describe("the demo upstream", () => {
  afterEach(closeAll);

  for (const era of ["legacy", "modern"] as const) {
    it(`reads, writes and deletes notes for ${era} clients, and keeps a log of it`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "demo-"));
      onCleanup(() => rm(folder, { recursive: true }));
      const log = join(folder, "log");
      const { fleet } = openFleet([{ ...demoUpstream({ DEMO_LOG: log }), name: "up" }]);
      const group = fleet.shared[era];
      expect((await group.tools()).map(({ name, capability }) => [name, capability])).to.deep.equal([
        ["list_notes", "read"],
        ["read_note", "read"],
        ["write_note", "write"],
        ["delete_note", "delete"],
      ]);
      expect(textOf(await call(group, "list_notes"))).to.equal("meeting\nshopping\nwelcome");
      expect(textOf(await call(group, "write_note", { title: "new", text: "words" }))).to.equal("wrote `new`");
      expect(textOf(await call(group, "read_note", { title: "new" }))).to.equal("words");
      expect(textOf(await call(group, "delete_note", { title: "new" }))).to.equal("deleted `new`");
      expect(textOf(await call(group, "read_note", { title: "new" }))).to.equal("there is no note `new`");
      const { readFile } = await import("node:fs/promises");
      expect((await readFile(log, "utf8")).trim().split("\n")).to.have.length(5);
    });
  }

  it("refuses an unknown tool, and says in the result which argument does not fit", async () => {
    const { fleet } = openFleet([{ ...demoUpstream(), name: "up" }]);
    const connection = await fleet.shared.modern.connection("up");
    const unknown = await connection.request({ method: "tools/call", params: { name: "nope", arguments: {} } });
    expect("error" in unknown && unknown.error.code).to.equal(-32602);
    const other = await connection.request({ method: "resources/list" });
    expect("error" in other && other.error.code).to.equal(-32601);
    const misfit = await call(fleet.shared.modern, "read_note", { title: "" });
    expect(textOf(misfit)).to.equal("invalid arguments: expected `title` to be 1 to 100 characters");
    expect("result" in misfit && misfit.result.isError).to.equal(true);
  });

  it("has one book of notes for clients of both eras", async () => {
    const { fleet } = openFleet([{ ...demoUpstream(), name: "up" }]);
    await call(fleet.shared.modern, "write_note", { title: "new", text: "by a modern client" });
    expect(textOf(await call(fleet.shared.legacy, "read_note", { title: "new" }))).to.equal("by a modern client");
  });
});

describe("server-filesystem over stdio", () => {
  afterEach(closeAll);

  it("lists its tools and reads a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "files-"));
    onCleanup(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "a.txt"), "content of a");
    const { group } = openGroup(program(join(packages, "server-filesystem/dist/index.js"), [folder]));
    expect((await group.tools()).map(({ name }) => name)).to.include.members(["read_text_file", "write_file"]);
    expect(textOf(await call(group, "read_text_file", { path: join(folder, "a.txt") }))).to.equal("content of a");
    expect(group.withheld()).to.deep.equal([]);
  });
});

async function exercise(
  group: UpstreamGroup,
  requests: readonly JsonRpcRequest[],
  notes: readonly JsonRpcNotification[],
): Promise<void> {
  expect(textOf(await call(group, "echo", { message: "hello" }))).to.equal("Echo: hello");
  expect((await group.prompts()).length).to.be.greaterThan(2);
  expect(await group.promptOwner("simple-prompt")).to.equal("up");
  expect((await group.resourceTemplates()).length).to.be.greaterThan(0);
  expect(await group.resourceOwner("demo://resource/dynamic/text/1")).to.equal("up");
  const sampled = textOf(await call(group, "trigger-sampling-request", { prompt: "p", maxTokens: 10 }));
  expect(sampled).to.include("sampled by the client");
  expect(requests.map(({ method }) => method)).to.include("sampling/createMessage");
  const progress: unknown[] = [];
  const connection = await group.connection("up");
  await connection.request(
    {
      method: "tools/call",
      params: { name: "trigger-long-running-operation", arguments: { duration: 0.2, steps: 2 } },
    },
    { meta: { progressToken: "token" }, onNotification: ({ params }) => progress.push(params?.progressToken) },
  );
  expect(progress).to.deep.equal(["token", "token"]);
  await connection.request({ method: "resources/subscribe", params: { uri: "demo://resource/dynamic/text/1" } });
  await call(group, "toggle-subscriber-updates");
  await until(() => notes.some(({ method }) => method === "notifications/resources/updated"), 8_000);
}

describe("server-everything", () => {
  afterEach(closeAll);

  for (const mode of ["stdio", "sse", "streamableHttp"] as const) {
    it(`serves everything over ${mode}`, async () => {
      const port = await freePort();
      if (mode !== "stdio") await startEverything(mode, port);
      const url = `http://127.0.0.1:${port}/${mode === "sse" ? "sse" : "mcp"}`;
      const config: UpstreamConfig =
        mode === "stdio" ? everything() : { ...http(url), transport: mode === "sse" ? "sse" : "http" };
      const requests: JsonRpcRequest[] = [];
      const notes: JsonRpcNotification[] = [];
      const { group } = openGroup(config, {
        capabilities: { sampling: {} },
        listener: listener({
          onNotification: (_, note) => notes.push(note),
          onRequest: async (_, request) => {
            requests.push(request);
            const content = { type: "text", text: "sampled by the client" };
            return { jsonrpc: "2.0", id: request.id, result: { role: "assistant", model: "m", content } };
          },
        }),
      });
      await exercise(group, requests, notes);
    });
  }
});

describe("a server of both eras over Streamable HTTP", () => {
  let url: string;

  beforeEach(async () => {
    url = await startConformanceServer();
  });
  afterEach(closeAll);

  function open(
    era: McpEra,
    protocol: "auto" | "legacy" | "modern",
    capabilities: JsonObject = {},
  ): ReturnType<typeof openGroup> {
    return openGroup(http(url, { protocol }), { era, capabilities });
  }

  for (const era of ["legacy", "modern"] as const) {
    for (const protocol of ["legacy", "modern"] as const) {
      it(`gives a ${era} client the same over ${protocol}`, async () => {
        const { group } = open(era, protocol);
        expect(textOf(await call(group, "test_simple_text"))).to.equal("This is a simple text response for testing.");
        expect(group.withheld()).to.deep.equal([]);
        const connection = await group.connection("up");
        expect(connection.server.era).to.equal(protocol);
        const notes: (string | undefined)[] = [];
        const meta = { progressToken: "t", [metaKey.logLevel]: "info" };
        const exchange = {
          meta,
          onNotification: ({ method, params }: JsonRpcNotification) =>
            notes.push(`${method} ${params?.progressToken ?? params?.data}`),
        };
        await connection.request(
          { method: "tools/call", params: { name: "test_tool_with_progress", arguments: {} } },
          exchange,
        );
        expect(notes).to.deep.equal(Array.from({ length: 3 }, () => "notifications/progress t"));
        notes.length = 0;
        await connection.request({ method: "logging/setLevel", params: { level: "info" } });
        await connection.request(
          { method: "tools/call", params: { name: "test_tool_with_logging", arguments: {} } },
          exchange,
        );
        expect(notes).to.deep.equal(
          ["started", "processing data", "completed"].map(
            (step) => `notifications/message Tool ${step === "processing data" ? "" : "execution "}${step}`,
          ),
        );
        const read = await connection.request({ method: "resources/read", params: { uri: "test://static-text" } });
        expect("result" in read && Object.keys(read.result).sort()).to.deep.equal(
          era === "modern"
            ? protocol === "modern"
              ? ["_meta", "cacheScope", "contents", "resultType", "ttlMs"]
              : ["cacheScope", "contents", "resultType", "ttlMs"]
            : protocol === "modern"
              ? ["_meta", "contents"]
              : ["contents"],
        );
      });
    }
  }

  it("asks a modern client for input, and takes its answer", async () => {
    const { group } = open("modern", "auto");
    const connection = await group.connection("up");
    const request = { method: "tools/call", params: { name: "test_sampling", arguments: { prompt: "p" } } };
    const meta = { [metaKey.clientCapabilities]: { sampling: {} } };
    const asked = await connection.request(request, { meta });
    expect("result" in asked && asked.result.resultType).to.equal("input_required");
    const inputResponses = { answer: { role: "assistant", model: "m", content: { type: "text", text: "yes" } } };
    const answered = await connection.request({ ...request, params: { ...request.params, inputResponses } }, { meta });
    expect(textOf(answered)).to.equal("LLM response: yes");
  });

  it("takes up a stream that the server closed", async () => {
    const { group } = open("legacy", "legacy");
    expect(textOf(await call(group, "test_reconnection"))).to.equal("answered on the stream the client came back with");
  });

  for (const protocol of ["legacy", "modern"] as const) {
    it(`tells a legacy client that a list changed, over ${protocol}`, async () => {
      const notes: JsonRpcNotification[] = [];
      const { group } = openGroup(http(url, { protocol }), {
        listener: listener({ onNotification: (_, note) => notes.push(note) }),
      });
      await group.tools();
      await new Promise((resolve) => setTimeout(resolve, 200));
      await call(group, "test_trigger_tool_change");
      await until(() => notes.length > 0);
      expect(notes).to.deep.equal([{ jsonrpc: "2.0", method: "notifications/tools/list_changed" }]);
    });
  }

  it("streams a subscription until it is ended", async () => {
    const { fleet } = openFleet([http(url)]);
    const connection = await fleet.shared.modern.connection("up");
    const controller = new AbortController();
    const notes: string[] = [];
    const params = { notifications: { toolsListChanged: true } };
    const ended = connection
      .request(
        { method: "subscriptions/listen", params },
        { signal: controller.signal, onNotification: ({ method }) => notes.push(method) },
      )
      .catch((error: Error) => error.message);
    await until(() => notes.length === 1);
    await call(fleet.group(scope()), "test_trigger_tool_change").catch(() => undefined);
    await call(fleet.shared.modern, "test_trigger_tool_change");
    await until(() => notes.length >= 2);
    expect(notes.slice(0, 2)).to.deep.equal([
      "notifications/subscriptions/acknowledged",
      "notifications/tools/list_changed",
    ]);
    controller.abort(new Error("enough"));
    expect(await ended).to.equal("enough");
  });
});
