import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { mcpMethods } from "../../../core/gateway/mcp/method.ts";
import { readAnswer } from "../../support/event-stream.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { routes } from "../../support/route-table.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { echoCall, keys, messageHeaders, openWorld, portsOf, post, upstreamSecret, type World } from "./world.ts";

const canary = "canary-of-the-client";

/** Headers that carry a client's secrets, say where it is, or have moved values between hops elsewhere. */
const leaky: HeaderList = [
  ["cookie", `session=${canary}`],
  ["cookie2", canary],
  ["proxy-authorization", `Bearer ${canary}`],
  ["x-amz-security-token", canary],
  ["x-csrf-token", canary],
  ["x-auth-token", canary],
  ["x-forwarded-for", `10.9.8.7, ${canary}`],
  ["x-forwarded-host", `${canary}.example`],
  ["x-forwarded-proto", canary],
  ["x-forwarded-port", canary],
  ["x-forwarded-prefix", `/${canary}`],
  ["x-original-url", `/${canary}`],
  ["x-rewrite-url", `/${canary}`],
  ["x-real-ip", canary],
  ["x-client-ip", canary],
  ["forwarded", `for=${canary};host=${canary}`],
  ["via", `1.1 ${canary}`],
  ["referer", `https://${canary}.example/`],
  ["user-agent", canary],
  ["from", canary],
  ["accept-language", canary],
  ["if-none-match", canary],
  ["range", canary],
  ["te", canary],
  ["trailer", canary],
  ["x-http-method-override", canary],
  ["x-gateway-session-id", canary],
  ["last-event-id", canary],
  ["baggage", `secret=${canary}`],
  ["tracestate", `vendor=${canary}`],
  ["x-anything-else", canary],
];

describe("what a client sends beside its call", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.stop());

  it("never reaches the upstream: not its key, no cookie, no header of any name [S12]", async () => {
    const connection: HeaderList = [["connection", "close, x-api-key, authorization, x-anything-else"]];
    const ways: readonly HeaderList[] = [
      [["x-api-key", keys.operator]],
      [["authorization", `Bearer ${keys.operator}`]],
      [["x-api-key", keys.operator], ...connection],
    ];
    for (const way of ways) {
      const headers: HeaderList = [...way, ["content-type", "application/json"], ...leaky];
      expect((await post(world, echoCall(), { headers })).status).to.equal(200);
    }
    const initialize = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "client", version: "1" },
    };
    const opening = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: initialize });
    const opened = await post(world, opening, { headers: [...messageHeaders(), ...leaky] });
    expect(opened.status).to.equal(200);
    const session = opened.headers.get("mcp-session-id") as string;
    const inSession: HeaderList = [...messageHeaders(), ...leaky, ["mcp-session-id", session]];
    expect((await post(world, echoCall(), { headers: inSession })).status).to.equal(200);

    const record = await world.upstream.requests();
    expect(await world.upstream.calls()).to.have.length(4);
    const text = JSON.stringify(record);
    for (const secret of [canary, session, ...Object.values(keys)]) expect(text).not.to.contain(secret);
    const names = new Set(record.flatMap(({ headers }) => headers.filter((_, at) => at % 2 === 0)));
    const allowed = ["accept", "authorization", "connection", "content-length", "content-type", "host"];
    expect([...names].filter((name) => !allowed.includes(name))).to.deep.equal(["mcp-protocol-version"]);
  });

  it("does not replace the gateway's own credential, which no reply and no log tells, and gets no other from it [S12, R1.1-22]", async () => {
    const callers = ["admin", "operator", "viewer", "foreign"] as const;
    const before = (await world.upstream.calls()).length;
    const responses = await Promise.all(
      callers.map((holder) => post(world, echoCall(), { headers: messageHeaders(holder) })),
    );
    expect(await world.upstream.calls()).to.have.length(before + callers.length);
    for (const { headers } of await world.upstream.requests()) {
      expect(headers[headers.indexOf("authorization") + 1]).to.equal(upstreamSecret);
    }
    const upstreams = await send(world.gateway.adminUrl, {
      target: "/admin/v1/upstreams",
      headers: [["x-api-key", keys.admin]],
    });
    expect(upstreams.status).to.equal(200);
    const answers = responses.flatMap(({ headers, body }) => [JSON.stringify([...headers]), body]);
    const said = [...answers, upstreams.body, world.gateway.stderr()];
    for (const text of said) expect(text).not.to.contain(upstreamSecret.slice("Bearer ".length));
  });

  it("is not believed about where it comes from [S12]", async () => {
    const reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
    await post(world, echoCall(), { headers: [...messageHeaders(), ["x-forwarded-for", "10.9.8.7"]] });
    const addresses = (await reader.recordsOf()).map(({ client }) => client.address);
    expect(new Set(addresses)).to.deep.equal(new Set(["127.0.0.1"]));
  });
});

describe("a body that names a server", () => {
  let world: World;
  let trap: Server;
  let dialled = 0;
  before(async () => {
    world = await openWorld();
    trap = createServer((socket) => {
      dialled++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => trap.listen(0, "127.0.0.1", resolve));
  });
  after(async () => {
    await world.stop();
    trap.close();
  });

  it("starts no process and dials nobody, on whatever route and in whatever member [S6]", async () => {
    const marker = join(world.gateway.folder, "spawned");
    const url = `http://127.0.0.1:${(trap.address() as AddressInfo).port}/mcp`;
    const server = {
      name: "echo",
      transport: "stdio",
      command: "/usr/bin/touch",
      args: [marker],
      env: { LD_PRELOAD: marker, NODE_OPTIONS: `--require ${marker}` },
      url,
      uri: url,
      base_url: url,
      headers: { authorization: "x" },
      ref: { type: "ref/resource", uri: url },
      argument: { name: "a", value: url },
      notifications: {},
      level: "info",
    };
    const bait = { ...server, upstreams: [server], mcpServers: { evil: server }, provider: server, server };
    const before = await childrenOf(world.gateway.process.pid as number);
    const methods = [...Object.keys(mcpMethods), "initialize", "ping", "server/discover", "vendor/connect"];
    for (const method of methods) {
      const params = { protocolVersion: "2025-11-25", capabilities: bait, clientInfo: bait, ...bait, _meta: bait };
      const message = { jsonrpc: "2.0", id: 1, method, params: { ...params, arguments: bait }, ...bait };
      const response = await post(world, JSON.stringify(message));
      expect(response.status, `${method}: ${response.body}`).to.be.oneOf([200, 404]);
    }
    for (const { port, method, path: target } of Object.values(routes)) {
      const headers = messageHeaders("admin");
      await readAnswer(portsOf(world.gateway)[port] as string, { method, target, headers, body: JSON.stringify(bait) });
    }
    expect(dialled).to.equal(0);
    expect(existsSync(marker)).to.equal(false);
    expect(await childrenOf(world.gateway.process.pid as number)).to.equal(before);
  });
});

function childrenOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
}
