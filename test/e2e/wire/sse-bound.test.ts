import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { openStream, until } from "../../support/event-stream.ts";
import { residentBytes } from "../../support/resident.ts";
import { postHeaders, SseAgent } from "../../support/sse-agent.ts";
import { dial, encodeRequest, type HeaderList, send } from "../../support/wire.ts";
import { echoCall, keys, openWorld, post, type World } from "./world.ts";

const key = keys.operator;
const most = 20;
const refusedCount = 1_000;
const mebibyte = 1_048_576;

describe("connections of HTTP+SSE", () => {
  let world: World;
  before(async () => {
    world = await openWorld(`mcp_gateway: { max_sessions: ${most} }
limits: { body_bytes: 8388608, json_string_length: 8388608 }`);
    await post(world, echoCall());
  });
  after(() => world.stop());

  const open = (): Promise<SseAgent> => SseAgent.open(world.gateway.url, key);
  const initialize = (): ReturnType<typeof post> => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {} };
    return post(world, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }));
  };

  it("are refused by the thousand beyond `mcp_gateway.max_sessions`, which sessions of /mcp count against too", async () => {
    const session = (await initialize()).headers.get("mcp-session-id") ?? "";
    const agents = await Promise.all(Array.from({ length: most - 1 }, open));
    const before = await residentBytes(world.gateway);
    let refused = 0;
    for (let round = 0; round < refusedCount / 50; round++) {
      const headers: HeaderList = [["x-api-key", key]];
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => send(world.gateway.url, { target: "/sse", headers })),
      );
      for (const { status, body } of answers) {
        expect(status).to.equal(429);
        expect(JSON.parse(body).error.message.replace(/\d+ s$/, "N s")).to.equal(
          `too many sessions: expected at most ${most} open sessions; end one, or try again in N s`,
        );
        refused++;
      }
    }
    expect(refused).to.equal(refusedCount);
    expect((await initialize()).status).to.equal(429);
    expect((await residentBytes(world.gateway)) - before).to.be.below(64 * mebibyte);
    for (const agent of agents) expect((await agent.echo()).error).to.equal(undefined);
    agents[0]?.hangUp();
    const next = await until(() => open().catch(() => undefined));
    for (const agent of [next, ...agents]) agent.hangUp();
    const headers: HeaderList = [...postHeaders(key), ["mcp-session-id", session]];
    expect((await send(world.gateway.url, { method: "DELETE", target: "/mcp", headers })).status).to.equal(204);
    await allFree();
  });

  it("give their place back where the stream never had its turn on its connection", async () => {
    for (let round = 0; round < most + 5; round++) {
      const socket = await dial(world.gateway.url);
      const kept: HeaderList = [...postHeaders(key), ["connection", "keep-alive"]];
      const slow = { method: "POST", target: "/mcp", headers: kept, body: echoCall('{"wait_ms":300}') };
      const stream = { target: "/sse", headers: kept };
      socket.write(Buffer.concat([slow, stream].map((one) => encodeRequest(world.gateway.url, one))));
      await sleep(30);
      socket.destroy();
    }
    await allFree();
  });

  it("live on without a word from their client, and are dropped when it hangs up without one", async () => {
    const agents = await Promise.all(Array.from({ length: most }, () => SseAgent.connect(world.gateway.url, key)));
    for (const agent of agents) agent.hangUp();
    await allFree();
  });

  it("are cut off where the client does not read, without much memory, while others are served [S20]", async () => {
    const [slow, quick] = [await open(), await open()];
    slow.stream.socket.pause();
    const before = await residentBytes(world.gateway);
    let largest = 0;
    const body = echoCall(`{"text":"${"y".repeat(4 * mebibyte)}"}`, '"ID"');
    const statuses: number[] = [];
    for (let round = 0; round < 40 && statuses.at(-1) !== 404; round++) {
      statuses.push((await slow.post(body.replace('"ID"', `"r${round}"`))).status);
      expect((await quick.echo({ round })).error).to.equal(undefined);
      largest = Math.max(largest, await residentBytes(world.gateway));
      await sleep(50);
    }
    expect(statuses.at(-1)).to.equal(404);
    expect(statuses.length).to.be.below(20);
    expect(largest - before).to.be.below(300 * mebibyte);
    slow.hangUp();
    quick.hangUp();
    await allFree();
  });

  it("give a quick reader an answer of any size whole", async () => {
    const agent = await open();
    const { result } = await agent.echo({ text: "y".repeat(7 * mebibyte) });
    expect(result?.content?.[0]?.text.length).to.be.above(7 * mebibyte);
    agent.hangUp();
    await allFree();
  });

  /** Resolves when every place is free, which it shows by taking them all. */
  async function allFree(): Promise<void> {
    await until(async () => {
      const headers: HeaderList = [["x-api-key", key]];
      const request = { target: "/sse", headers };
      const streams = await Promise.all(Array.from({ length: most }, () => openStream(world.gateway.url, request)));
      for (const stream of streams) stream.hangUp();
      return streams.every(({ status }) => status === 200);
    });
    await until(async () => (await openCount()) === 0);
  }

  async function openCount(): Promise<number> {
    const { body } = await send(world.gateway.metricsUrl, { target: "/metrics" });
    return Number(/^gateway_mcp_sessions (\d+)$/m.exec(body)?.[1]);
  }
});
