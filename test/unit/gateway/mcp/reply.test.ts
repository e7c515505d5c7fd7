import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { mock } from "node:test";
import { expect } from "chai";
import { Reply } from "../../../../core/gateway/mcp/reply.ts";
import { until } from "../../../support/event-stream.ts";
import { dial } from "../../../support/wire.ts";

const get = "GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n";

describe("Reply", () => {
  let server: Server;
  let client: Socket;
  let said: string;
  const responses: ServerResponse[] = [];

  beforeEach(async () => {
    responses.length = 0;
    server = createServer((_, response) => void responses.push(response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    client = await dial(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    said = "";
    client.setEncoding("utf8");
    client.on("data", (chunk) => {
      said += chunk;
    });
  });

  afterEach(() => {
    mock.timers.reset();
    client.destroy();
    server.close();
  });

  /** The response to the latest of `count` requests that are sent together. */
  async function replyTo(count: number): Promise<Reply> {
    client.write(get.repeat(count));
    await until(() => responses.length === count);
    return new Reply(responses.at(-1) as ServerResponse, true);
  }

  it("keeps a stream in use with a comment every 25 s, and none once it has ended", async () => {
    const reply = await replyTo(1);
    mock.timers.enable({ apis: ["setInterval"] });
    reply.announce("/x");
    mock.timers.tick(24_999);
    reply.send({ jsonrpc: "2.0", method: "notifications/message" });
    mock.timers.tick(25_001);
    reply.end(200);
    mock.timers.tick(100_000);
    await until(() => said.endsWith("0\r\n\r\n"));
    const frames = said.split("\r\n").filter((line) => line.includes("\n\n"));
    expect(frames).to.deep.equal([
      "event: endpoint\ndata: /x\n\n",
      'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n',
      ": keep-alive\n\n",
      ": keep-alive\n\n",
    ]);
  });

  it("sends a long result whole, in a turn of its own after which nothing follows", async () => {
    const reply = await replyTo(1);
    const text = "\u017c\ud83d\ude00 ".repeat(50_000);
    reply.finish(200, { jsonrpc: "2.0", id: 1, result: { text } });
    expect([reply.open, responses[0]?.headersSent]).to.deep.equal([false, false]);
    expect(reply.send({ jsonrpc: "2.0", method: "x" })).to.equal(false);
    reply.finish(500, { jsonrpc: "2.0", id: 1, result: {} });
    reply.end(202);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { text } });
    await until(() => said.endsWith("}"));
    expect(said.split("\r\n\r\n")).to.deep.equal([said.split("\r\n\r\n")[0], body]);
    expect(said)
      .to.match(/^HTTP\/1\.1 200 /)
      .and.include(`content-length: ${Buffer.byteLength(body)}\r\n`);
  });

  it("sends a long result as the last event of a stream, on one line", async () => {
    const reply = await replyTo(1);
    reply.send({ jsonrpc: "2.0", method: "x" });
    const text = "\u017c\ud83d\ude00\u2028\u0085 ".repeat(50_000);
    reply.finish(200, { jsonrpc: "2.0", id: 1, result: { text } });
    expect(reply.send({ jsonrpc: "2.0", method: "y" })).to.equal(false);
    await until(() => said.endsWith("0\r\n\r\n"));
    const [, ...chunks] = said.split("\r\n\r\n")[1]?.split(/(?:^|\r\n)[0-9a-f]+\r\n/) ?? [];
    const [first, last] = chunks.join("").split("\n\n") as [string, string];
    expect(first).to.equal('event: message\ndata: {"jsonrpc":"2.0","method":"x"}');
    expect(last).to.not.match(/[\u2028\u0085]/);
    expect(JSON.parse(last.replace("event: message\ndata: ", ""))).to.deep.equal({
      jsonrpc: "2.0",
      id: 1,
      result: { text },
    });
  });

  it("hangs up on a reader that left megabytes unread, instead of sending a long result behind them", async () => {
    const reply = await replyTo(1);
    client.pause();
    reply.startStream();
    const [response] = responses;
    while ((response?.writableLength ?? 0) <= 4_194_304) response?.write("x".repeat(1_048_576));
    reply.finish(200, { jsonrpc: "2.0", id: 1, result: { text: "x".repeat(100_000) } });
    await until(() => response?.destroyed === true);
    client.resume();
  });

  it("drops a long result of which the client hung up before its turn", async () => {
    const reply = await replyTo(1);
    reply.finish(200, { jsonrpc: "2.0", id: 1, result: { text: "x".repeat(100_000) } });
    responses[0]?.destroy();
    await new Promise(setImmediate);
    expect(responses[0]?.headersSent).to.equal(false);
  });

  it("says that a stream has closed, once, when its client hangs up", async () => {
    const reply = await replyTo(1);
    let closed = 0;
    reply.startStream();
    reply.onClosed(() => closed++);
    client.destroy();
    await until(() => closed > 0);
    expect([closed, reply.open, reply.send({ jsonrpc: "2.0", method: "x" })]).to.deep.equal([1, false, false]);
  });

  it("says so of a stream whose turn on its connection has not come", async () => {
    const reply = await replyTo(2);
    let closed = 0;
    reply.startStream();
    reply.onClosed(() => closed++);
    expect(reply.open).to.equal(true);
    client.destroy();
    await until(() => closed > 0);
    expect([closed, reply.open]).to.deep.equal([1, false]);
  });

  it("says so of twenty that wait for their turn, to whoever still listens, and warns of no leak", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error): void =>
      void (warning.name === "MaxListenersExceededWarning" && warnings.push(warning));
    process.on("warning", warned);
    client.write(get.repeat(20));
    await until(() => responses.length === 20);
    const closed: number[] = [];
    responses.forEach((response, index) => {
      const stop = new Reply(response, false).onClosed(() => closed.push(index));
      if (index === 7) stop();
    });
    client.destroy();
    await until(() => closed.length === 19);
    process.off("warning", warned);
    expect(closed).not.to.include(7);
    expect(warnings).to.deep.equal([]);
  });

  it("leaves nothing on a connection that carries many streams one after another", async () => {
    const reply = await replyTo(1);
    const { socket } = (responses[0] as ServerResponse).req;
    const before = socket.listenerCount("close");
    for (let stream = 2; stream < 30; stream++) {
      const next = stream === 2 ? reply : new Reply(responses.at(-1) as ServerResponse, true);
      next.startStream();
      next.end(200);
      client.write(get);
      await until(() => responses.length === stream);
    }
    expect(socket.listenerCount("close")).to.be.at.most(before);
  });
});
