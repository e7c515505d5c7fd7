import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { principalId, sessionScope } from "../../../core/action/principal.ts";
import { openStream, until } from "../../support/event-stream.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { introduction, postHeaders, SseAgent } from "../../support/sse-agent.ts";
import { dial, encodeRequest, type HeaderList, send, type WireResponse } from "../../support/wire.ts";
import { echoCall, effectsOf, type KeyHolder, keys, nothing, openWorld, post, type World } from "./world.ts";

const key = keys.operator;
const statelessHeaders = [
  ["mcp-protocol-version", "2026-07-28"],
  ["mcp-method", "tools/call"],
  ["mcp-name", "echo"],
] as const;
const stateless = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "echo",
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});
const label = "x-gateway-session-id";

describe("HTTP+SSE", () => {
  let world: World;
  before(async () => {
    world = await openWorld("limits: { body_bytes: 65536 }");
    await post(world, echoCall());
  });
  after(() => world.stop());

  const open = (holder: KeyHolder = "operator"): Promise<SseAgent> => SseAgent.open(world.gateway.url, keys[holder]);
  const connect = (): Promise<SseAgent> => SseAgent.connect(world.gateway.url, key);
  const get = (headers: HeaderList, method = "GET"): Promise<WireResponse> =>
    send(world.gateway.url, { method, target: "/sse", headers });

  describe("GET /sse", () => {
    it("answers an unbuffered stream that first says where to post [R1.2-3, R4.1-3]", async () => {
      const { stream, path } = await connect();
      expect(stream.status).to.equal(200);
      expect(stream.headers.get("content-type")).to.equal("text/event-stream");
      expect(stream.headers.get("cache-control")).to.equal("no-cache, no-transform");
      expect(stream.headers.get("x-accel-buffering")).to.equal("no");
      expect(stream.events()).to.deep.equal([{ event: "endpoint", data: path }]);
      stream.hangUp();
    });

    it("gives each connection an id of 256 random bits, that stands nowhere else [S26]", async () => {
      const agents = await Promise.all(Array.from({ length: 20 }, connect));
      const ids = agents.map(({ path }) => /^\/mcp\/session\/([A-Za-z0-9_-]{43})$/.exec(path)?.[1] ?? "");
      expect(ids.every((id) => Buffer.from(id, "base64url").length === 32)).to.equal(true);
      expect(new Set(ids).size).to.equal(20);
      // Random ids differ in about half of their bits, whichever two are compared.
      const [one = "", ...others] = ids;
      for (const other of others) expect(differentBits(one, other)).to.be.within(80, 176);
      for (const agent of agents) agent.hangUp();
      const log = world.gateway.stderr() + world.gateway.stdout();
      for (const id of ids) expect(log).not.to.include(id);
    });

    it("answers HEAD without opening anything", async () => {
      const { status, headers, body } = await get([["x-api-key", key]], "HEAD");
      expect([status, headers.get("content-type"), body]).to.deep.equal([200, "text/event-stream", ""]);
    });

    it("refuses foreign hosts and origins [S9]", async () => {
      for (const foreign of [
        ["host", "evil.example"],
        ["origin", "https://evil.example"],
      ] as const) {
        const { status, body } = await get([foreign, ["x-api-key", key]]);
        expect([status, JSON.parse(body).error.code]).to.deep.equal([403, 1403]);
        const agent = await open();
        const effects = await effectsOf(world, async () => {
          expect((await agent.post(echoCall(), [foreign, ...postHeaders(key)])).status).to.equal(403);
        });
        expect(effects).to.deep.equal(nothing);
        agent.hangUp();
      }
    });

    it("refuses a label, which would have no effect, and two keys [S3, S2]", async () => {
      const labelled = await get([
        ["x-api-key", key],
        [label, "a"],
      ]);
      expect(labelled.status).to.equal(400);
      expect(JSON.parse(labelled.body).error).to.include({
        message: "invalid header: expected no `x-gateway-session-id`: an SSE connection is a session of its own",
      });
      const twice = await get([
        ["x-api-key", key],
        ["x-api-key", keys.admin],
      ]);
      expect(twice.status).to.equal(400);
    });
  });

  describe("POST /mcp/session/{id}", () => {
    it("is answered 202, and its request on the stream alone [R4.1-5, R6-4]", async () => {
      const agent = await open();
      const accepted = await agent.post(echoCall('{"mine":1}', '"seven"'));
      expect([accepted.status, accepted.body]).to.deep.equal([202, "Accepted"]);
      const { result } = await agent.stream.awaitMessage(({ id }) => id === "seven");
      expect(result?.content?.[0]?.text).to.include('"mine":1');
      agent.hangUp();
    });

    it("is answered in one frame, whatever text would end one", async () => {
      const agent = await open();
      const text = "\\n\\nevent: endpoint\\r\\ndata: /mcp/session/evil\\r\\r\\u2028\\u0085: x";
      await agent.post(echoCall(`{"text":"${text}"}`, '"frame"'));
      const { result } = await agent.stream.awaitMessage(({ id }) => id === "frame");
      expect(result?.content?.[0]?.text).to.include("/mcp/session/evil");
      expect(agent.stream.events().map(({ event }) => event)).to.deep.equal(["endpoint", "message", "message"]);
      agent.hangUp();
    });

    it("acts in the scope of its connection, of which evidence speaks [R2.1-14, R2.1-15]", async () => {
      const agents = [await open(), await open()];
      const scopes = agents.map(({ path }) =>
        sessionScope("sse", "acme", principalId("acme", contentDigest(key)), path.slice("/mcp/session/".length)),
      );
      for (const agent of agents) await agent.echo();
      const sessions = await new EvidenceReader(world.gateway.adminUrl, key).sessions();
      for (const scope of scopes) {
        const found = sessions.find(({ id }) => id === scope.id);
        expect(found).to.deep.include({ transport: "sse", records: 2 });
        expect(found).not.to.have.property("label");
      }
      for (const agent of agents) agent.hangUp();
    });

    it("is refused by one and the same 404 for whoever's it is not, and 401 without a key [S26, R4.1-5, R2.1-15]", async () => {
      const agent = await open();
      const gone = await open();
      gone.hangUp();
      await until(async () => (await gone.post(echoCall())).status === 404);
      const effects = await effectsOf(world, async () => {
        const foreign: KeyHolder[] = ["foreign", "admin", "viewer"];
        const answers = await Promise.all([
          ...foreign.map((holder) => agent.post(echoCall(), postHeaders(keys[holder]))),
          gone.post(echoCall()),
          ...guessesOf(agent.path).map((target) =>
            send(world.gateway.url, { method: "POST", target, headers: postHeaders(key), body: echoCall() }),
          ),
        ]);
        for (const { status, body } of answers) {
          expect(status).to.equal(404);
          const { error } = JSON.parse(body);
          expect(error.message).to.equal("session not found: open a new one");
          expect(error.data.code).to.equal("SESSION_UNKNOWN");
        }
        expect((await agent.post(echoCall(), [["content-type", "application/json"]])).status).to.equal(401);
        expect((await agent.post(echoCall(), postHeaders(`${key}x`))).status).to.equal(401);
      });
      expect(effects).to.deep.equal(nothing);
      expect(agent.stream.messages().length).to.equal(1);
      agent.hangUp();
    });

    it("takes no session of /mcp, and /mcp takes no connection [S26]", async () => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: introduction });
      const session = (await post(world, body)).headers.get("mcp-session-id") ?? "";
      const target = `/mcp/session/${session}`;
      const headers = postHeaders(key);
      expect((await send(world.gateway.url, { method: "POST", target, headers, body: echoCall() })).status).to.equal(
        404,
      );
      const agent = await open();
      const id = agent.path.slice("/mcp/session/".length);
      const claimed: HeaderList = [...headers, ["mcp-session-id", id]];
      expect((await post(world, echoCall(), { headers: claimed })).status).to.equal(404);
      const end = { method: "DELETE", target: "/mcp", headers: claimed };
      expect((await send(world.gateway.url, end)).status).to.equal(404);
      expect((await agent.echo()).result?.isError ?? false).to.equal(false);
      agent.hangUp();
    });

    const json = ["content-type", "application/json"] as const;
    const call = echoCall();
    for (const [what, headers, body, status, code] of [
      ["a label", [json, [label, "a"]], call, 400, "INVALID_HEADER"],
      ["malformed JSON", [json], "{", 400, "MALFORMED_JSON"],
      ["a duplicate key", [json], '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}', 400, "MALFORMED_JSON"],
      ["another content type", [["content-type", "text/plain"]], call, 415, "UNSUPPORTED_MEDIA_TYPE"],
      ["a body with a coding", [json, ["content-encoding", "gzip"]], call, 415, "UNSUPPORTED_MEDIA_TYPE"],
      ["too large a body", [json], echoCall(`{"a":"${"x".repeat(65_536)}"}`), 413, "BODY_TOO_LARGE"],
      ["a batch", [json], `[${call}]`, 400, "INVALID_REQUEST"],
      ["an id that is null", [json], echoCall("{}", "null"), 400, "INVALID_REQUEST"],
      ["a call as a notification", [json], '{"jsonrpc":"2.0","method":"tools/call"}', 400, "INVALID_REQUEST"],
      ["an answer nobody waits for", [json], '{"jsonrpc":"2.0","id":"gateway-1","result":{}}', 400, "INVALID_REQUEST"],
      ["a second handshake", [json], initialize(9), 400, "INVALID_REQUEST"],
      ["the stateless revision", [json, ...statelessHeaders], stateless, 400, "PROTOCOL_VERSION"],
      ["an unknown revision", [json, ["mcp-protocol-version", "1999-01-01"]], call, 400, "PROTOCOL_VERSION"],
      ["a header unlike the body", [json, ["mcp-method", "tools/list"]], call, 400, "HEADER_MISMATCH"],
    ] as const) {
      it(`refuses ${what} by its own status, and nothing is run or said [S19, S23]`, async () => {
        const agent = await open();
        const effects = await effectsOf(world, async () => {
          const response = await agent.post(body, [["x-api-key", key], ...headers]);
          expect([response.status, JSON.parse(response.body).error.data.code]).to.deep.equal([status, code]);
        });
        expect(effects).to.deep.equal(nothing);
        await agent.request("ping");
        expect(agent.stream.messages().length).to.equal(2);
        agent.hangUp();
      });
    }

    it("takes nothing but `ping` before the handshake, which may be repeated where it failed", async () => {
      const agent = await connect();
      const effects = await effectsOf(world, async () => {
        const { status, body } = await agent.post(echoCall());
        expect(status).to.equal(400);
        expect(JSON.parse(body).error.message).to.equal("invalid request: expected `initialize` first");
        expect((await agent.request("ping", {}, "p")).result).to.deep.equal({});
      });
      expect(effects).to.deep.equal(nothing);
      const failed = await agent.request("initialize", { protocolVersion: "2024-11-05" }, "one");
      expect(failed.error?.code).to.equal(-32602);
      const done = await agent.request("initialize", introduction, "two");
      expect(done.result).to.deep.include({ protocolVersion: "2024-11-05" });
      agent.hangUp();
    });

    it("gives each of two principals its own answers, though all ids are equal and in flight at once [S23]", async () => {
      const holders: KeyHolder[] = ["operator", "admin", "foreign", "operator"];
      const agents = await Promise.all(holders.map(open));
      await Promise.all(
        agents.map(async (agent, mine) => {
          for (const id of [1, "1"]) {
            const { result } = await agent.echo({ mine: `agent ${mine}`, wait_ms: 50 * mine }, `${id}x`);
            expect(result?.content?.[0]?.text).to.include(`agent ${mine}`);
          }
        }),
      );
      for (const agent of agents) agent.hangUp();
    });

    it("refuses an id that is in flight, and answers the first alone", async () => {
      const agent = await open();
      expect((await agent.post(echoCall('{"wait_ms":300}', "77"))).status).to.equal(202);
      const again = await agent.post(echoCall("{}", "77"));
      expect([again.status, JSON.parse(again.body).error.data.code]).to.deep.equal([400, "INVALID_REQUEST"]);
      await agent.stream.awaitMessage(({ id }) => id === 77);
      await sleep(100);
      expect(agent.stream.messages().filter(({ id }) => id === 77).length).to.equal(1);
      agent.hangUp();
    });

    it("serves 64 requests at once, refuses one more, and has room again", async () => {
      const agent = await open();
      const posted = Array.from({ length: 64 }, (_, id) => agent.post(echoCall('{"wait_ms":1500}', `"c${id}"`)));
      expect((await Promise.all(posted)).map(({ status }) => status)).to.deep.equal(Array(64).fill(202));
      const calls = (await world.upstream.calls()).length;
      const more = await agent.post(echoCall("{}", '"more"'));
      expect([more.status, JSON.parse(more.body).error.message]).to.deep.equal([
        429,
        "too many concurrent requests on one connection: expected at most 64 requests in flight",
      ]);
      await until(() => agent.stream.messages().filter(({ id }) => String(id).startsWith("c")).length === 64);
      expect((await world.upstream.calls()).length).to.be.at.most(calls + 64);
      expect((await agent.echo({}, "again")).error).to.equal(undefined);
      agent.hangUp();
    });

    it("reads 64 bodies at once, refuses one more, and has room again", async () => {
      const agent = await open();
      const slow = await Promise.all(Array.from({ length: 64 }, () => beginPost(world.gateway.url, agent.path)));
      await sleep(200);
      const more = await agent.post(echoCall());
      expect([more.status, JSON.parse(more.body).error.message]).to.deep.equal([
        429,
        "too many concurrent requests on one connection: expected at most 64 posts at once",
      ]);
      for (const socket of slow) socket.destroy();
      await until(async () => (await agent.post('{"jsonrpc":"2.0","id":"r","method":"ping"}')).status === 202);
      agent.hangUp();
    });

    it("cancels a call, tells the upstream, and does not answer it", async () => {
      const agent = await open();
      await agent.post(echoCall('{"wait_ms":1000}', '"late"'));
      await until(async () => (await world.upstream.calls()).at(-1)?.body.includes("wait_ms"));
      const before = (await cancellations(world)).length;
      const params = { requestId: "late", reason: "enough" };
      const cancel = await agent.post({ jsonrpc: "2.0", method: "notifications/cancelled", params });
      expect(cancel.status).to.equal(202);
      await until(async () => (await cancellations(world)).length === before + 1);
      await sleep(1_200);
      expect(agent.stream.messages().some(({ id }) => id === "late")).to.equal(false);
      agent.hangUp();
    });
  });

  describe("a connection that ends", () => {
    it("cancels what is in flight, and its id is dead at once [R2.1-14, S26]", async () => {
      const agent = await open();
      await agent.post(echoCall('{"wait_ms":5000,"whose":"gone"}', '"a"'));
      await until(async () => (await world.upstream.calls()).at(-1)?.body.includes("gone"));
      const before = (await cancellations(world)).length;
      agent.hangUp();
      await until(async () => (await cancellations(world)).length === before + 1);
      expect((await agent.post(echoCall())).status).to.equal(404);
      const again = await open();
      expect(again.path).not.to.equal(agent.path);
      again.hangUp();
    });

    it("while a post arrives refuses that, and nothing is run", async () => {
      const agent = await open();
      const effects = await effectsOf(world, async () => {
        const arriving = await beginPost(world.gateway.url, agent.path);
        let said = "";
        arriving.on("data", (chunk) => {
          said += String(chunk);
        });
        await sleep(100);
        agent.hangUp();
        await until(async () => (await agent.post(echoCall())).status === 404);
        arriving.write(echoCall().padEnd(100));
        await until(() => said.includes("SESSION_UNKNOWN"));
        expect(said).to.match(/^HTTP\/1\.1 404 /);
        arriving.destroy();
      });
      expect(effects).to.deep.equal(nothing);
    });
  });
});

describe("HTTP+SSE where /mcp needs no key", () => {
  let world: World;
  before(async () => {
    world = await openWorld("mcp_gateway: { require_auth: false, anonymous_tenant: acme }");
  });
  after(() => world.stop());

  it("needs one all the same, of whatever role [R4.1-4, R5-6, R7-4]", async () => {
    const without = await post(world, echoCall(), { headers: [["content-type", "application/json"]] });
    expect(without.status).to.equal(200);
    for (const headers of [[], [["x-api-key", "wrong"]]] as HeaderList[]) {
      const { status, headers: said, body } = await send(world.gateway.url, { target: "/sse", headers });
      expect([status, said.get("www-authenticate"), JSON.parse(body).error.code]).to.deep.equal([401, "Bearer", 1401]);
    }
    const stream = await openStream(world.gateway.url, {
      target: "/sse",
      headers: [["authorization", `Bearer ${keys.viewer}`]],
    });
    expect(stream.status).to.equal(200);
    stream.hangUp();
  });

  it("makes all who come to /mcp without one the same, and gives none of them a connection [R5-5]", async () => {
    const headers: HeaderList = [["content-type", "application/json"]];
    for (let caller = 0; caller < 3; caller++)
      expect((await post(world, echoCall(), { headers })).status).to.equal(200);
    const records = await new EvidenceReader(world.gateway.adminUrl, keys.operator).recordsOf();
    const who = new Set(records.map(({ principal, session }) => `${principal} ${session.id}`));
    expect([records.length >= 6, who.size]).to.deep.equal([true, 1]);
  });

  it("takes no post without one [S26, R4.1-5]", async () => {
    const agent = await SseAgent.open(world.gateway.url, keys.viewer);
    const effects = await effectsOf(world, async () => {
      expect((await agent.post(echoCall(), [["content-type", "application/json"]])).status).to.equal(401);
    });
    expect(effects).to.deep.equal(nothing);
    agent.hangUp();
  });
});

function initialize(id: number): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", params: introduction });
}

function differentBits(one: string, other: string): number {
  const [a, b] = [Buffer.from(one, "base64url"), Buffer.from(other, "base64url")];
  return a.reduce((sum, byte, at) => sum + (byte ^ (b[at] as number)).toString(2).replaceAll("0", "").length, 0);
}

/** Paths that are not this one, however near. */
function guessesOf(path: string): readonly string[] {
  const last = path.endsWith("A") ? "B" : "A";
  return [`${path.slice(0, -1)}${last}`, path.slice(0, -1), `${path}A`, "/mcp/session/x", "/mcp/session/__proto__"];
}

/** Begins to post a body of 100 bytes, of which none is sent. */
async function beginPost(url: string, target: string): Promise<Socket> {
  const socket = await dial(url);
  const headers: HeaderList = [...postHeaders(key), ["content-length", "100"]];
  socket.write(encodeRequest(url, { method: "POST", target, headers }));
  return socket;
}

/** The cancellations that reached the upstream so far. */
async function cancellations(world: World): Promise<readonly unknown[]> {
  return (await world.upstream.requests()).filter(({ body }) => body.includes("notifications/cancelled"));
}
