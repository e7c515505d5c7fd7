import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { ModelProvider, scripts } from "../../fixture/model-provider.ts";
import { answerEvents } from "../../fixture/model-reply.ts";
import { until } from "../../support/event-stream.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type ClientKind, connectClient, type McpClient } from "../../support/mcp-client.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { exportVerified } from "../../support/verified-bundle.ts";
import { type ModelSdk, modelSdks } from "../model/sdk.ts";

type Scope = "session" | "principal" | "tenant" | "gateway";
type KeyHolder = "agent" | "operator" | "admin" | "foreign";

interface Row {
  readonly scope: Scope;
  /** Which of the model clients, and which MCP client, act in one session. */
  readonly sdk: 0 | 1 | 2;
  readonly kind: ClientKind;
  readonly by: KeyHolder;
  /** What an operator of another tenant is told of it. */
  readonly foreign: number;
}

const rows: readonly Row[] = [
  { scope: "session", sdk: 0, kind: "v1", by: "operator", foreign: 404 },
  { scope: "session", sdk: 1, kind: "v2 legacy", by: "operator", foreign: 404 },
  { scope: "session", sdk: 2, kind: "v2 modern", by: "operator", foreign: 404 },
  { scope: "principal", sdk: 0, kind: "v2 modern", by: "operator", foreign: 404 },
  { scope: "tenant", sdk: 1, kind: "v1", by: "operator", foreign: 409 }, // its own tenant is not stopped
  { scope: "gateway", sdk: 2, kind: "v2 legacy", by: "admin", foreign: 403 },
];
const newKey = (): string => `test-${randomBytes(32).toString("base64url")}`;
const keys = { agent: newKey(), operator: newKey(), admin: newKey(), foreign: newKey() };
const slow = answerEvents("chat", { text: "word ".repeat(6_000) });
const slowMessages = answerEvents("messages", { text: "word ".repeat(6_000) });

for (const { scope, sdk: sdkIndex, kind, by, foreign } of rows) {
  const sdkName = ["openai 6.x", "anthropic 0.x", "anthropic 1.x"][sdkIndex];

  describe(`the kill switch of scope ${scope}, with ${sdkName} and MCP client ${kind} in one session`, () => {
    const label = "one-label";
    const model = sdkIndex === 0 ? "chat-model" : "messages-model";
    let folder: string;
    let provider: ModelProvider;
    let upstream: Recorder;
    let gateway: RunningGateway;
    let client: McpClient;
    let sdk: ModelSdk;
    let target: object;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "kill-switch-"));
      provider = await ModelProvider.start();
      upstream = await startRecorder();
      await start();
    });

    after(async () => {
      provider.stop();
      await upstream.stop();
      await gateway.kill9();
      await client.close();
      await rm(folder, { recursive: true });
    });

    async function start(): Promise<void> {
      gateway = await startGateway({
        folder,
        config: configFor(provider, upstream),
        files: allowEverything("packs/open"),
        env: { PROVIDER_KEY: "provider-key" },
      });
      const headers = { "x-gateway-session-id": label };
      client = await connectClient(kind, {
        url: `${gateway.url}/mcp`,
        headers: { "x-api-key": keys.agent, ...headers },
      });
      sdk = modelSdks(gateway.url, keys.agent, headers)[sdkIndex] as ModelSdk;
    }

    async function order(holder: KeyHolder, path: string, body: object): Promise<number> {
      const headers = { "x-api-key": keys[holder], "content-type": "application/json" };
      const response = await fetch(`${gateway.adminUrl}/admin/v1/${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      return response.status;
    }

    /** Calls that reached the provider and the MCP server, by their own logs. */
    async function reached(): Promise<{ readonly models: number; readonly tools: number }> {
      return { models: provider.calls.length, tools: (await upstream.calls()).length };
    }

    async function expectBlocked(): Promise<void> {
      const before = await reached();
      const refused = await client.callTool("echo", {});
      expect(refused.isError).to.equal(true);
      expect(refused.content[0]?.text).to.match(new RegExp(`is stopped until an .* \\(rule ${scope}\\.killed\\)`));
      const asked = await failure(sdk.ask({ model, text: "hello" }));
      expect(asked).to.include({ status: 403 });
      expect(String(asked)).to.include("is stopped until an");
      expect(await reached()).to.deep.equal(before);
    }

    async function expectActing(): Promise<void> {
      const before = await reached();
      expect((await client.callTool("echo", {})).isError ?? false).to.equal(false);
      expect(await sdk.ask({ model, text: "hello" })).to.include({ text: "Hello." });
      expect(await reached()).to.deep.equal({ models: before.models + 1, tools: before.tools + 1 });
    }

    it("cuts a running stream and a running tool call, on both roads, upstream too [S60]", async () => {
      await expectActing();
      const own = (await reader().sessions()).filter((session) => session.label === label);
      expect(own.map(({ records }) => records)).to.deep.equal([4]);
      const [{ id, principal } = { id: "", principal: "" }] = own;
      const subject = scope === "session" ? { subject: id } : scope === "principal" ? { subject: principal } : {};
      target = { scope, ...subject };

      let heard = "";
      provider.next((response, call) => scripts.streams(call.api === "chat" ? slow : slowMessages, 10)(response, call));
      const streamed = failure(sdk.stream({ model, text: "hello", onText: (text) => (heard += text) }));
      const called = failure(client.callTool("echo", { mark: "running", wait_ms: 60_000 }));
      await until(() => heard.length > 0);
      const running = await until(async () => (await upstream.calls()).find(({ body }) => body.includes("running")));

      expect(await order(by, "kills", target)).to.equal(200);
      const [stream, call] = await Promise.all([streamed, called]);
      for (const error of [stream, call]) {
        expect(String(error)).to.match(/stopped by the kill switch: .* is stopped until an .* releases it/);
      }
      await until(() => provider.calls.at(-1)?.brokenAtMs);
      const { id: requestId } = JSON.parse(running.body) as { id: unknown };
      const cancelled = await until(async () =>
        (await upstream.requests()).find(({ body }) => body.includes("notifications/cancelled")),
      );
      expect(JSON.parse(cancelled.body)).to.have.nested.property("params.requestId", requestId);
    });

    it("blocks the next on both roads with a clear error, and neither upstream is called", expectBlocked);

    it("does so after a kill -9 of the gateway", async () => {
      await client.close();
      await gateway.kill9();
      await start();
      await expectBlocked();
    });

    it("is released only by who may, with a reason, and acts again on both roads", async () => {
      const reason = "looked into";
      expect(await order("agent", "kills/release", { ...target, reason })).to.equal(403);
      expect(await order("foreign", "kills/release", { ...target, reason })).to.equal(foreign);
      expect(await order(by, "kills/release", target)).to.equal(400);
      await expectBlocked();
      expect(await order(by, "kills/release", { ...target, reason })).to.equal(200);
      await expectActing();
    });

    it("leaves it all on record, for both verifiers to find sound", async () => {
      const [session] = (await reader().sessions()).filter((each) => each.label === label);
      const records = await exportVerified(gateway.adminUrl, keys.operator, session?.id ?? "");
      const events = records.flatMap(({ kind: of, ...record }) =>
        of === "session" && "detail" in record && "scope" in record.detail ? [record.detail] : [],
      );
      expect(events.map(({ event, reason }) => [event, reason])).to.deep.equal([
        ["killed", "operator"],
        ["released", "looked into"],
      ]);
      const cut = records.flatMap((record) => ("effect" in record && record.effect === "unknown" ? [record] : []));
      expect(cut.map(({ action }) => action.protocol)).to.have.members(["model", "mcp"]);
      expect(await reader().verify()).to.include({ ok: true });
    });

    function reader(): EvidenceReader {
      return new EvidenceReader(gateway.adminUrl, keys.operator);
    }
  });
}

/** The error a promise rejects with. */
async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection, got an answer");
}

function configFor(provider: ModelProvider, upstream: Recorder): string {
  const entry = (id: KeyHolder, tenant: string, role: string): string => {
    const hash = createHash("sha256").update(keys[id]).digest("hex");
    return `  - { id: ${id}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
  };
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${entry("agent", "acme", "viewer")}
${entry("operator", "acme", "operator")}
${entry("admin", "acme", "admin")}
${entry("foreign", "umbrella", "operator")}
upstreams: [{ name: recorder, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared }]
providers:
  - { name: open, type: openai, base_url: "${provider.baseUrl("openai")}", api_key_env: PROVIDER_KEY, models: [chat-model] }
  - { name: claude, type: anthropic, base_url: "${provider.baseUrl("anthropic")}", api_key_env: PROVIDER_KEY, models: [messages-model] }
model_gateway:
  routes:
    - { model: chat-model, providers: [{ name: open }] }
    - { model: messages-model, providers: [{ name: claude }] }
sessions: { gateway_tenant: acme }
policy: { packs: [{ path: packs/open }] }
`;
}
