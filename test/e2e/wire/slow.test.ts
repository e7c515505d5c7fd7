import { readdir } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { localConfig } from "../../../core/config/local.ts";
import { dial, encodeRequest, type HeaderList, send } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

const shortLimits = "limits: { headers_ms: 1500, body_ms: 3000, keep_alive_ms: 1500 }";
/** Bytes, one a second, that a slow peer gets rid of at most: half of what the default limits of 30 s would let through. */
const maxBytes = 15;
const socketCount = 1_000;

const head = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${keys.operator}\r\nContent-Type: application/json\r\n`;

/** How slow peers behave: what they send at once, and what they then send a byte a second of. */
const manners: readonly [string, string, string][] = [
  ["nothing at all", "", ""],
  ["a byte of headers a second", "POST /mcp HT", `${head.slice(12)}X-Slow: ${"x".repeat(100)}`],
  ["headers that never end", head, "X-A: b\r\n".repeat(100)],
  ["a byte of a body a second", `${head}Content-Length: 1000\r\n\r\n`, echoCall().padEnd(1_000)],
  ["a byte of a chunk a second", `${head}Transfer-Encoding: chunked\r\n\r\n3e8\r\n`, echoCall().padEnd(1_000)],
  ["a refused body a byte a second", `${head}Content-Length: 9999999\r\n\r\n`, " ".repeat(1_000)],
  ["garbage, and then nothing", "\x16\x03\x01\r\n\r\n", ""],
  [
    "an upgrade nobody grants",
    "GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "",
  ],
  ["a framing nobody trusts", `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, ""],
];

describe("slow peers", () => {
  let world: World;
  before(async () => {
    world = await openWorld(shortLimits);
    await post(world, echoCall());
  });
  after(() => world.stop());

  it("are closed in time, a thousand of them, while others are served at once [S20]", async () => {
    const effects = await effectsOf(world, async () => {
      const before = await openFiles(world);
      const sockets = await Promise.all(Array.from({ length: socketCount }, () => dial(world.gateway.url, true)));
      let over = false;
      const lives = Promise.all(sockets.map((socket, index) => lifeOf(socket, mannerOf(index)))).finally(() => {
        over = true;
      });
      const served = await healthChecks(world, () => over);
      expect(Math.max(...(await lives))).to.be.at.most(maxBytes);
      expect(served).to.be.above(10);
      // The peers still hold their halves; the gateway must not hold its own.
      await sleep(2_000);
      expect((await openFiles(world)) - before).to.be.below(50);
      for (const socket of sockets) socket.destroy();
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("are closed within 30 s where nothing is configured [S20]", () => {
    const { limits } = localConfig({ dataDir: "data", mark: null, packs: [], plugins: [], upstreams: [], keys: [] });
    const sweepAndLastWordsMs = 3_000;
    expect(limits.headersMs + sweepAndLastWordsMs).to.be.at.most(30_000);
    expect(limits.bodyMs + sweepAndLastWordsMs).to.be.at.most(30_000);
  });

  it("do not hold up a stop by hanging up on requests that wait in line", async () => {
    const other = await openWorld();
    await post(other, echoCall());
    const headers: HeaderList = [...messageHeaders(), ["connection", "keep-alive"]];
    const body = echoCall('{"wait_ms":300}');
    const one = encodeRequest(other.gateway.url, { method: "POST", target: "/mcp", headers, body });
    const socket = await dial(other.gateway.url);
    socket.write(Buffer.concat([one, one, one]));
    await sleep(100);
    socket.destroy();
    await sleep(500);
    expect(await other.gateway.stop()).to.equal(0);
    await other.upstream.stop();
  });
});

type Manner = (typeof manners)[number];

function mannerOf(index: number): Manner {
  return manners[index % manners.length] as Manner;
}

/** Returns how many seconds had been counted, one byte each, when the peer of a slow socket ended it. Our half stays open. */
function lifeOf(socket: Socket, [, opening, rest]: Manner): Promise<number> {
  let [sent, seconds] = [0, 0];
  socket.write(opening);
  const timer = setInterval(() => {
    seconds += 1;
    if (sent < rest.length) socket.write(rest.charAt(sent++));
  }, 1_000);
  return new Promise((resolve) => {
    const finish = (): void => {
      clearInterval(timer);
      resolve(seconds);
    };
    socket.on("data", () => undefined);
    socket.once("end", finish);
    socket.once("error", finish);
  });
}

/** Asks for `/health`, each time on a connection of its own, until `over`; returns how often it was answered. */
async function healthChecks(world: World, over: () => boolean): Promise<number> {
  let served = 0;
  while (!over()) {
    expect((await send(world.gateway.url, { target: "/health" })).status).to.equal(200);
    served += 1;
    await sleep(50);
  }
  return served;
}

/** How many files and sockets the gateway holds open. */
async function openFiles(world: World): Promise<number> {
  return (await readdir(`/proc/${world.gateway.process.pid}/fd`)).length;
}
