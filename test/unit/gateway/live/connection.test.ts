import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import type { WebSocket } from "ws";
import { LiveConnection, type LiveParts } from "../../../../core/gateway/live/connection.ts";
import { encodeTextFrame } from "../../../../core/gateway/live/frame.ts";
import { LivePlaces } from "../../../../core/gateway/live/place.ts";
import { LiveFeed } from "../../../../core/observe/live-feed.ts";

/** A socket whose reader takes as much as the test says. */
class Socket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  readonly sent: string[] = [];

  send(text: string): void {
    this.sent.push(text);
  }

  ping(): void {
    // Nothing answers.
  }

  close(): void {
    this.readyState = 2;
  }

  terminate(): void {
    this.readyState = 3;
  }
}

describe("LiveConnection", () => {
  let socket: Socket;
  let stream: PassThrough;
  let feed: LiveFeed;
  let connection: LiveConnection;

  beforeEach(() => {
    socket = new Socket();
    stream = new PassThrough();
    feed = new LiveFeed({ clock: () => 0, elapsedMs: () => 0, showLabels: true, log: { info: () => undefined } });
    const limits = { maxWebsockets: 1, maxUnauthenticatedWebsockets: 1, keySharePercent: 25, tenantSharePercent: 50 };
    const bounds = { depth: 8, nodes: 100, stringLength: 1_000, reader: "exact" };
    const fairShare = { admit: () => undefined, admitSmall: () => undefined };
    const places = new LivePlaces<LiveConnection>(limits);
    const parts = { feed, bounds, fairShare, places } as unknown as LiveParts;
    const client = { name: "c", version: "1", address: "127.0.0.1" };
    const principal = { id: "p", tenant: "acme", role: "viewer", keyId: "k" } as const;
    connection = new LiveConnection(socket as unknown as WebSocket, stream, parts, client, principal);
    socket.emit("message", Buffer.from('{"type":"subscribe","payload":{"channels":["risk"]}}'), false);
  });
  afterEach(() => connection.close("stopping"));

  async function publish(count: number): Promise<void> {
    for (let at = 0; at < count; at++) feed.publish("acme", "risk", () => ({ at }));
    for (let at = 0; at < 3; at++) await turn();
  }

  const written = (): readonly string[] => String(stream.read() ?? "").match(/"at":\d+/g) ?? [];
  const missed = (): readonly string[] => socket.sent.filter((text) => text.includes('"missed"'));

  it("skips events for a reader that is behind, and says how many once it caught up", async () => {
    await publish(2);
    expect(written()).to.deep.equal(['"at":0', '"at":1']);
    socket.bufferedAmount = 262_145;
    await publish(3);
    await publish(4);
    expect([written(), missed()]).to.deep.equal([[], []]);
    socket.bufferedAmount = 1_000;
    await publish(1);
    expect(missed()).to.deep.equal(['{"type":"missed","id":null,"payload":{"count":7}}']);
    expect(written()).to.deep.equal(['"at":0']);
  });

  it("says so with the next ping where no further event comes", async () => {
    socket.bufferedAmount = 262_145;
    await publish(3);
    connection.probe();
    expect(missed()).to.deep.equal([]);
    socket.bufferedAmount = 0;
    connection.probe();
    expect(missed()).to.have.lengthOf(1);
  });

  it("writes nothing to a socket that is closing", async () => {
    socket.close();
    await publish(1);
    expect(written()).to.deep.equal([]);
  });
});

describe("encodeTextFrame(ascii)", () => {
  // RFC 6455, section 5.2: a final text frame without a mask; its length in 7 bits, in 16 after 126, in 64 after 127.
  const headers: readonly (readonly [length: number, header: string])[] = [
    [0, "8100"],
    [125, "817d"],
    [126, "817e007e"],
    [65_535, "817effff"],
    [65_536, "817f0000000000010000"],
  ];
  for (const [length, header] of headers) {
    it(`says that ${length} characters follow`, () => {
      const text = "x".repeat(length);
      expect(encodeTextFrame(text).toString("latin1")).to.equal(Buffer.from(header, "hex").toString("latin1") + text);
    });
  }
});
