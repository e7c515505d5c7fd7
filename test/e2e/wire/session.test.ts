import { once } from "node:events";
import { expect } from "chai";
import { dial, encodeRequest, type HeaderList, send, type WireResponse } from "../../support/wire.ts";
import { echoCall, keys, messageHeaders, openWorld, post, type World } from "./world.ts";

const most = 3;

describe("a session", () => {
  let world: World;
  before(async () => {
    world = await openWorld(`mcp_gateway: { max_sessions: ${most} }
limits: { body_bytes: 16777216, json_string_length: 16777216 }`);
  });
  after(() => world.stop());

  it("is refused beyond `mcp_gateway.max_sessions`, however many ask at once, and has a place again once one ended", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => initialize(world)));
    const opened = answers.filter(({ status }) => status === 200).map(sessionOf);
    expect(opened.length).to.equal(most);
    const refused = answers.filter(({ status }) => status === 429).map(({ body }) => JSON.parse(body).error);
    expect(refused.length).to.equal(20 - most);
    expect(refused[0]).to.include({
      code: 1429,
      message: `too many sessions: expected at most ${most} open sessions; end one, or try again in 60 s`,
    });
    for (const session of opened) expect((await end(world, session)).status).to.equal(204);
    const again = await initialize(world);
    expect(again.status).to.equal(200);
    await end(world, sessionOf(again));
  });

  it("opens for a client whose name is cut in the middle of a character", async () => {
    const answer = await initialize(world, `${"x".repeat(127)}😀`);
    expect(answer.status).to.equal(200);
    await end(world, sessionOf(answer));
  });

  it("answers HEAD without a body, and leaves the standing stream where it is", async () => {
    const session = sessionOf(await initialize(world));
    const stream = await openStream(world, session);
    const head = await send(world.gateway.url, { method: "HEAD", target: "/mcp", headers: streamHeaders(session) });
    expect([head.status, head.headers.get("content-type"), head.body]).to.deep.equal([200, "text/event-stream", ""]);
    expect(stream.destroyed || stream.readableEnded).to.equal(false);
    stream.destroy();
    await end(world, session);
  });

  it("gives a long answer whole to a client that reads it as a stream", async () => {
    const body = echoCall(`{"text":"${"y".repeat(9_000_000)}"}`);
    const headers: HeaderList = [...messageHeaders(), ["accept", "text/event-stream"]];
    const answer = await post(world, body, { headers });
    expect([answer.status, answer.headers.get("content-type")]).to.deep.equal([200, "text/event-stream"]);
    const message = JSON.parse(answer.body.slice(answer.body.indexOf("data: ") + 6));
    expect(message.result.content[0].text.length).to.be.above(9_000_000);
  });
});

function initialize(world: World, name: string = "test"): Promise<WireResponse> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } };
  return post(world, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }));
}

function sessionOf(answer: WireResponse): string {
  const id = answer.headers.get("mcp-session-id");
  if (id === undefined) throw new Error(`expected a session, got ${answer.body}`);
  return id;
}

function end(world: World, session: string): Promise<WireResponse> {
  return send(world.gateway.url, { method: "DELETE", target: "/mcp", headers: streamHeaders(session) });
}

function streamHeaders(session: string): HeaderList {
  return [
    ["x-api-key", keys.operator],
    ["mcp-session-id", session],
    ["accept", "text/event-stream"],
  ];
}

async function openStream(world: World, session: string): ReturnType<typeof dial> {
  const socket = await dial(world.gateway.url);
  socket.write(encodeRequest(world.gateway.url, { target: "/mcp", headers: streamHeaders(session) }));
  await once(socket, "data");
  return socket;
}
