import { expect } from "chai";
import { everythingServer } from "../e2e/client/server-program.ts";
import { openWorld as openClientWorld } from "../e2e/client/world.ts";
import { modelSdks } from "../e2e/model/sdk.ts";
import { openModelWorld } from "../e2e/model/world.ts";
import { echoCall, keys, openWorld } from "../e2e/wire/world.ts";
import { scripts } from "../fixture/model-provider.ts";
import { answerEvents } from "../fixture/model-reply.ts";
import { openStream, until } from "../support/event-stream.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { clientKinds, connectClient } from "../support/mcp-client.ts";
import { scrape } from "../support/scrape.ts";
import { SseAgent } from "../support/sse-agent.ts";
import { type HeaderList, send } from "../support/wire.ts";
import { checkShipped, type Edits, proxyKinds, type RunningProxy, shippedProxy, startProxy } from "./proxy.ts";

/** Between two events of a slow stream; far more than a proxy needs to pass one on. */
const pauseMs = 250;
/** In place of the hour that a stream may be silent, and for how long one is. */
const shortRead = "1s";
const silentMs = 3_000;

/** What keeps events back: the opposite of what the shipped file says, and deaf to what the gateway says. */
const holdingBack: Edits = [
  ["proxy_buffering off;", "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"],
  ["gzip off;", "gzip on; gzip_types text/event-stream; gzip_min_length 0;"],
];

const answer = "It is sunny in Zürich today.";
const words = answer.split(" ").length;

/** Headers by which a proxy may say who its client is; here the client says so itself. */
const claims: HeaderList = [
  ["x-forwarded-for", "203.0.113.9"],
  ["x-real-ip", "203.0.113.9"],
  ["forwarded", "for=203.0.113.9;host=admin.example"],
  ["x-forwarded-user", "admin"],
  ["x-remote-user", "admin"],
  ["x-ssl-client-verify", "SUCCESS"],
];

/** How far apart the first and the last of some moments are. */
function spreadMs(moments: readonly number[]): number {
  return Math.max(...moments) - Math.min(...moments);
}

for (const kind of proxyKinds) {
  describe(`${kind} in front of a gateway, as we ship it`, function () {
    this.timeout(60_000);
    const proxies: RunningProxy[] = [];

    async function proxyFor(gatewayUrl: string, edits?: Edits): Promise<RunningProxy> {
      const proxy = await startProxy(kind, gatewayUrl, edits);
      proxies.push(proxy);
      return proxy;
    }

    afterEach(async () => {
      await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
    });

    it("is read as it ships, TLS and all", async () => {
      const { code, stdout, stderr } = await checkShipped(kind);
      expect(code, stdout + stderr).to.equal(0);
      expect(stderr).to.not.match(/warn/i);
    });

    describe("between MCP clients and their servers", () => {
      let world: Awaited<ReturnType<typeof openClientWorld>>;

      before(async () => {
        world = await openClientWorld({ servers: () => ({ every: everythingServer() }) });
      });

      after(() => world.stop());

      for (const client of clientKinds) {
        it(`${client}: progress arrives while the tool runs, one by one [R8-6]`, async () => {
          const { url } = await proxyFor(world.gateway.url);
          const agent = await connectClient(client, { url: `${url}/mcp`, headers: { "x-api-key": world.key } });
          expect((await agent.listTools()).length).to.be.above(5);
          const moments: number[] = [];
          const steps = 4;
          const args = { duration: (steps * pauseMs) / 1000, steps };
          const onProgress = (): void => void moments.push(performance.now());
          const { content } = await agent.callTool("trigger-long-running-operation", args, { onProgress });
          expect(content[0]?.text).to.include("completed");
          expect(moments).to.have.length(steps);
          expect(spreadMs(moments)).to.be.above((steps - 2) * pauseMs);
          await agent.close();
        });
      }
    });

    describe("between model clients and their providers", () => {
      let world: Awaited<ReturnType<typeof openModelWorld>>;

      before(async () => {
        world = await openModelWorld({ settings: "tool_passthrough: true\n  holdback_bytes: 0" });
      });

      after(() => world.stop());

      /** What an official client reads of a slow answer, and how often it had to wait for the next word. */
      async function streamThrough(url: string, index: number): Promise<{ text: string; pauses: number }> {
        const sdk = modelSdks(url, world.keys.agent)[index];
        if (sdk === undefined) throw new TypeError("expected a client");
        const moments: number[] = [];
        world.provider.next(scripts.streams(answerEvents(sdk.api, { text: answer }), pauseMs));
        const model = sdk.api === "chat" ? "chat-model" : "messages-model";
        const onText = (): void => void moments.push(performance.now());
        const { text } = await sdk.stream({ model, text: "hello", onText });
        const waits = moments.map((moment, at) => moment - (moments[at - 1] ?? moment));
        return { text, pauses: waits.filter((wait) => wait > pauseMs / 2).length };
      }

      for (const [index, name] of ["openai 6.x", "anthropic 0.x", "anthropic 1.x"].entries()) {
        it(`${name}: a streamed answer arrives as it is made, word by word`, async () => {
          const { url } = await proxyFor(world.gateway.url);
          expect(await streamThrough(url, index)).to.deep.equal({ text: answer, pauses: words - 1 });
        });
      }

      if (kind === "nginx") {
        it("would deliver the answer at once at its end, were it to buffer and compress [R8-6]", async () => {
          const { url } = await proxyFor(world.gateway.url, holdingBack);
          const { text, pauses } = await streamThrough(url, 0);
          expect(text).to.equal(answer);
          expect(pauses).to.equal(0);
        });
      }

      it("the provider is told when the client goes", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const [sdk] = modelSdks(url, world.keys.agent);
        const client = new AbortController();
        world.provider.next(scripts.streams(answerEvents("chat", { text: answer }), 1_000));
        const onText = (): void => client.abort();
        await sdk?.stream({ model: "chat-model", text: "hello", signal: client.signal, onText }).catch(() => undefined);
        await until(() => world.provider.calls.at(-1)?.brokenAtMs, 2_000);
      });
    });

    describe("on the wire", () => {
      let world: Awaited<ReturnType<typeof openWorld>>;

      before(async () => {
        world = await openWorld();
      });

      after(() => world.stop());

      it("a stream that is silent for long stays open, and is cut with a shorter time to read [R8-6]", async () => {
        const shipped = [...shippedProxy(kind).matchAll(/read_timeout (\S+)/g)].map(([, time]) =>
          time?.replace(";", ""),
        );
        expect(shipped).to.deep.equal(["1h"]);
        const patient = await proxyFor(world.gateway.url);
        const hasty = await proxyFor(world.gateway.url, [["read_timeout 1h", `read_timeout ${shortRead}`]]);
        const [kept, cut] = await Promise.all([patient, hasty].map(({ url }) => SseAgent.open(url, keys.operator)));
        await new Promise((resolve) => setTimeout(resolve, silentMs));
        expect([kept, cut].map((agent) => agent?.stream.ended())).to.deep.equal([false, true]);
        expect((await kept?.echo())?.result?.isError).to.not.equal(true);
        kept?.hangUp();
      });

      it("an idle GET of /mcp stays open as well [R8-6]", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const headers: HeaderList = [
          ["x-api-key", keys.operator],
          ["content-type", "application/json"],
          ["accept", "application/json, text/event-stream"],
        ];
        const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
        const opened = await send(url, { method: "POST", target: "/mcp", headers, body });
        const session = opened.headers.get("mcp-session-id") ?? "";
        expect(session).to.not.equal("");
        const stream = await openStream(url, { target: "/mcp", headers: [...headers, ["mcp-session-id", session]] });
        expect(stream.status).to.equal(200);
        await new Promise((resolve) => setTimeout(resolve, silentMs));
        expect(stream.ended()).to.equal(false);
        stream.hangUp();
      });

      it("lets nobody claim to be somebody: no header of a client's names it", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const message = { method: "POST", target: "/mcp", body: echoCall() };
        const plain: HeaderList = [["content-type", "application/json"]];
        const before = await world.upstream.calls();
        const nobody = await send(url, { ...message, headers: [...plain, ...claims] });
        expect(nobody.status).to.equal(401);
        expect(await world.upstream.calls()).to.have.length(before.length);
        const label: HeaderList = [["x-gateway-session-id", `claims-${kind}`]];
        const known = await send(url, {
          ...message,
          headers: [...plain, ...claims, ...label, ["x-api-key", keys.viewer]],
        });
        expect(known.status).to.equal(200);
        const reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
        const [decision] = await reader.recordsOf((name) => name === `claims-${kind}`);
        expect(decision?.client.address).to.match(/^(?:::ffff:)?127\.0\.0\.1$/);
        const seen = JSON.stringify(await world.upstream.requests());
        for (const [name, value] of claims) {
          expect(seen).to.not.include(name);
          expect(seen).to.not.include(value);
        }
      });

      it("leads to the paths of agents, and to no other port", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const admin: HeaderList = [["x-api-key", keys.admin]];
        const before = await answered();
        for (const target of [
          "/admin/v1/approvals",
          "/metrics",
          "/",
          "/sse/x",
          "/v1/../admin/v1/approvals",
          "//metrics",
        ]) {
          expect((await send(url, { target, headers: admin })).status, target).to.equal(404);
        }
        expect(await answered()).to.equal(before);
        expect(shippedProxy(kind)).to.not.match(/808[12]/);
      });

      it("hands on who was asked for, which the gateway checks", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const headers: HeaderList = [
          ["host", "attacker.example"],
          ["x-api-key", keys.operator],
        ];
        const { status } = await send(url, { target: "/health", headers });
        expect(status).to.equal(403);
      });

      it("hands on two keys as two, which the gateway refuses", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const headers: HeaderList = [
          ["content-type", "application/json"],
          ["x-api-key", keys.operator],
          ["x-api-key", keys.viewer],
        ];
        const { status } = await send(url, { method: "POST", target: "/mcp", headers, body: echoCall() });
        expect(status).to.equal(400);
      });

      it("hands on a body up to the gateway's own bound, beyond which the gateway's own words refuse it", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const headers: HeaderList = [
          ["content-type", "application/json"],
          ["x-api-key", keys.operator],
        ];
        const bodies = [2_000_000, 4_300_000].map((length) => echoCall(JSON.stringify({ mark: "x".repeat(length) })));
        const answers = await Promise.all(
          bodies.map((body) => send(url, { method: "POST", target: "/mcp", headers, body })),
        );
        expect(answers.map(({ status }) => status)).to.deep.equal([200, 413]);
        expect(JSON.parse(answers[1]?.body ?? "")).to.have.property("error");
      });

      /** Requests that reached the gateway port. */
      async function answered(): Promise<number> {
        const series = [...(await scrape(world.gateway.metricsUrl))];
        return series
          .filter(([name]) => name.startsWith('gateway_requests_total{port="gateway"'))
          .reduce((sum, [, count]) => sum + count, 0);
      }
    });
  });
}
