import { expect } from "chai";
import { LiveClient } from "../e2e/live/live-client.ts";
import { echoCall, keys, openWorld, post } from "../e2e/wire/world.ts";
import { openStream } from "../support/event-stream.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { scrape } from "../support/scrape.ts";
import { SseAgent } from "../support/sse-agent.ts";
import { type HeaderList, send } from "../support/wire.ts";
import { checkShipped, type Edits, proxyKinds, type RunningProxy, shippedProxy, startProxy } from "./proxy.ts";

/** In place of the hour that a stream may be silent, and for how long one is. */
const shortRead = "1s";
const silentMs = 3_000;

/** Headers by which a proxy may say who its client is; here the client says so itself. */
const claims: HeaderList = [
  ["x-forwarded-for", "203.0.113.9"],
  ["x-real-ip", "203.0.113.9"],
  ["forwarded", "for=203.0.113.9;host=admin.example"],
  ["x-forwarded-user", "admin"],
  ["x-remote-user", "admin"],
  ["x-ssl-client-verify", "SUCCESS"],
];

for (const kind of proxyKinds) {
  describe(`${kind} as we ship it, on the wire`, () => {
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

      it("a WebSocket tells each decision, and may be silent for as long [R8-6]", async () => {
        const patient = await proxyFor(world.gateway.url);
        const hasty = await proxyFor(world.gateway.url, [["read_timeout 1h", `read_timeout ${shortRead}`]]);
        const clients = [patient, hasty].map(({ url }) => new LiveClient(url, { key: keys.operator }));
        const [kept, cut] = await Promise.all(clients.map((client) => client.open()));
        const closed = cut?.closed();
        await new Promise((resolve) => setTimeout(resolve, silentMs));
        // Caddy counts no time on a connection that became another protocol's.
        if (kind === "nginx") expect(await closed).to.deep.equal([1006, ""]);
        kept?.say("subscribe", { channels: ["decisions"] }, "s");
        await kept?.hear(({ type }) => type === "subscribed");
        await post(world, echoCall());
        const told = await kept?.hear(({ type }) => type === "event");
        expect(told?.payload.data).to.include({ decision: "allow", tool: "echo" });
        for (const client of [kept, cut]) client?.socket.terminate();
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

      it("leads clients to the metadata of OAuth, which the gateway answers for", async () => {
        const { url } = await proxyFor(world.gateway.url);
        for (const path of ["", "/mcp"]) {
          const { status, body } = await send(url, { target: `/.well-known/oauth-protected-resource${path}` });
          expect([status, JSON.parse(body).code]).to.deep.equal([404, "NOT_FOUND"]); // as OAuth is not configured here
        }
        expect((await send(url, { target: "/.well-known/openid-configuration" })).body).to.not.contain("NOT_FOUND");
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
