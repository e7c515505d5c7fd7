import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { type Answer, call, closeAll, fault, type HttpFixture, http, openGroup, startHttp, textOf } from "./fixture.ts";

/** An HTTP+SSE server that announces `endpoint` and answers on its stream. */
function sse(endpoint: string, onCall: (id: number, stream: ServerResponse) => void): Answer {
  let stream: ServerResponse | undefined;
  return ({ method, message }, response) => {
    if (method === "GET") {
      stream = response;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    response.writeHead(202).end("accepted");
    const send = (value: object): void => void stream?.write(`event: message\ndata: ${JSON.stringify(value)}\n\n`);
    const { id } = message;
    if (id === undefined) return;
    const result = { protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo: {} };
    if (message.method === "initialize") send({ jsonrpc: "2.0", id, result });
    else if (stream !== undefined) onCall(id, stream);
  };
}

function answers(id: number, stream: ServerResponse): void {
  const result = { content: [{ type: "text", text: "over sse" }] };
  stream.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
}

interface Opened extends ReturnType<typeof openGroup> {
  readonly requests: HttpFixture["requests"];
  readonly paths: readonly string[];
}

async function open(answer: Answer): Promise<Opened> {
  const paths: string[] = [];
  const { url, requests } = await startHttp((request, response) => {
    paths.push(request.path);
    answer(request, response);
  });
  return { ...openGroup({ ...http(url), transport: "sse" }), requests, paths };
}

describe("an upstream over HTTP+SSE", () => {
  afterEach(closeAll);

  it("answers on its stream what was posted to the address it announced", async () => {
    const { group, requests } = await open(sse("/messages?session=1", answers));
    expect(textOf(await call(group, "x"))).to.equal("over sse");
    expect(requests.map(({ body }) => body.slice(0, 60))[1]).to.include('"method":"initialize"');
    expect((await group.connection("up")).server.revision).to.equal("2024-11-05");
  });

  for (const endpoint of [
    "http://evil.example/messages",
    "//evil.example/",
    "https://127.0.0.1/",
    "http://u:p@evil.example/",
    "x".repeat(5_000),
  ]) {
    it(`refuses the endpoint ${endpoint.slice(0, 30)}, and posts nothing`, async () => {
      const { group, requests } = await open(sse(endpoint, answers));
      expect(await fault(call(group, "x"))).to.equal(
        "UPSTREAM_INVALID invalid response from upstream: expected an endpoint on the upstream's own origin",
      );
      expect(requests.filter(({ body }) => body !== "")).to.deep.equal([]);
    });
  }

  it("is told of a request's trace by header, and of a request without one nothing", async () => {
    const { group, requests } = await open(sse("/messages", answers));
    const connection = await group.connection("up");
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await connection.request({ method: "tools/call", params: { name: "x" } }, { traceparent });
    await call(group, "x");
    const said = requests.filter(({ body }) => body.includes("tools/call")).map(({ headers }) => headers.traceparent);
    expect(said).to.deep.equal([traceparent, undefined]);
  });

  it("keeps to the first endpoint it was told", async () => {
    const { group, paths } = await open(
      sse("/one", (id, stream) => {
        stream.write("event: endpoint\ndata: /two\n\n");
        answers(id, stream);
      }),
    );
    await call(group, "x");
    await call(group, "x");
    expect(new Set(paths.slice(1))).to.deep.equal(new Set(["/one"]));
  });

  it("rejects what is in flight when the stream ends", async () => {
    const { group } = await open(sse("/messages", (_, stream) => stream.end()));
    expect(await fault(call(group, "x"))).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: the upstream closed its event stream",
    );
  });

  it("fails the one request that was not taken", async () => {
    const { group } = await open((request, response) => {
      if (request.message.method === "tools/call") response.writeHead(503).end();
      else shared(request, response);
    });
    const shared = sse("/messages", answers);
    expect(await fault(call(group, "x"))).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: the upstream answered HTTP 503",
    );
  });

  it("ends the connection at an event that is too long", async () => {
    const { group } = await open(sse("/messages", (_, stream) => stream.write(`data: ${"x".repeat(1_200_000)}`)));
    expect(await fault(call(group, "x"))).to.match(/expected an event of at most 1000000 bytes, got more$/);
  });

  it("refuses what is no event stream", async () => {
    const { group } = await open((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>"));
    expect(await fault(call(group, "x"))).to.equal(
      "UPSTREAM_INVALID invalid response from upstream: expected an event stream",
    );
  });
});
