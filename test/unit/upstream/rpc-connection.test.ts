import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonRpcNotification } from "../../../core/action/json-rpc.ts";
import { call, closeAll, fault, hostile, listener, openGroup, textOf, until } from "./fixture.ts";

describe("request(request, exchange)", () => {
  afterEach(closeAll);

  it("puts its own progress token on the wire and the caller's into the notifications", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const notes: JsonRpcNotification[] = [];
    const params = { name: "work", arguments: {} };
    const meta = { progressToken: "mine" };
    await connection.request({ method: "tools/call", params }, { meta, onNotification: (note) => notes.push(note) });
    expect(notes.map(({ params: at }) => at)).to.deep.equal(
      [1, 2, 3, 4, 5, 6].map((progress) => ({ progressToken: "mine", progress })),
    );
    const echoed = await connection.request({ method: "tools/call", params: { name: "echo" } }, { meta });
    expect(JSON.parse(textOf(echoed))._meta.progressToken).to.be.a("number");
  });

  it("sends no `_meta` of the stateless revision to a legacy upstream", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", traceparent: "00-1" };
    const echoed = await connection.request({ method: "tools/call", params: { name: "echo" } }, { meta });
    expect(JSON.parse(textOf(echoed))).to.deep.equal({ name: "echo", _meta: { traceparent: "00-1" } });
  });

  it("sends the envelope of the stateless revision to a modern upstream, with its own revision and the name of the gateway", async () => {
    const { group } = openGroup(hostile("modern"), { era: "modern" });
    const connection = await group.connection("up");
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "1",
      "io.modelcontextprotocol/clientCapabilities": { roots: {} },
    };
    const echoed = await connection.request({ method: "tools/call", params: { name: "echo" } }, { meta });
    expect(JSON.parse(textOf(echoed))._meta).to.deep.equal({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "gateway", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": { roots: {} },
    });
  });

  it("starts the silence anew with each progress notification", async () => {
    const { group } = openGroup(hostile("", { timeoutMs: 250 }));
    const connection = await group.connection("up");
    const worked = await connection.request(
      { method: "tools/call", params: { name: "work" } },
      { meta: { progressToken: 1 } },
    );
    expect(textOf(worked)).to.equal("worked");
  });

  it("ends at the longest time allowed, progress or not, and tells the upstream", async () => {
    const { group } = openGroup(hostile("", { timeoutMs: 5_950, maxTimeoutMs: 6_000 }));
    const connection = await group.connection("up");
    const endless = connection.request(
      { method: "tools/call", params: { name: "work_forever" } },
      { meta: { progressToken: 1 } },
    );
    expect(await fault(endless)).to.equal(
      "UPSTREAM_TIMEOUT upstream did not answer in time: expected an answer to `tools/call` within 6000 ms",
    );
    expect(JSON.parse(textOf(await call(group, "received")))).to.include('{"requestId":2,"reason":"timeout"}');
  });

  it("rejects with the signal's reason, and tells the upstream", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const controller = new AbortController();
    const waiting = connection.request(
      { method: "tools/call", params: { name: "hang" } },
      { signal: controller.signal },
    );
    controller.abort(new GatewayError("STOPPING"));
    expect(await fault(waiting)).to.match(/^STOPPING /);
    expect(JSON.parse(textOf(await call(group, "received")))).to.include(
      '{"requestId":2,"reason":"cancelled by the caller"}',
    );
  });

  it("sends nothing for a signal that has already aborted", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const signal = AbortSignal.abort(new GatewayError("STOPPING"));
    expect(await fault(connection.request({ method: "tools/call", params: { name: "die" } }, { signal }))).to.match(
      /^STOPPING /,
    );
    expect(
      JSON.parse(textOf(await call(group, "received"))).filter((method: string) => method === "tools/call"),
    ).to.have.length(1);
  });

  it("hands the server's requests to the listener, and its answer back", async () => {
    const asked: string[] = [];
    const { group } = openGroup(hostile(), {
      capabilities: { roots: {} },
      listener: listener({
        onRequest: async (upstream, { id, method }) => {
          asked.push(`${upstream} ${method}`);
          return { jsonrpc: "2.0", id, result: { roots: [] } };
        },
      }),
    });
    await call(group, "ask");
    await until(() => asked.length > 0);
    expect(asked).to.deep.equal(["up roots/list"]);
    expect(JSON.parse(textOf(await call(group, "received")))).to.include(
      '{"jsonrpc":"2.0","id":"ask-1","result":{"roots":[]}}',
    );
  });

  it("refuses more requests in flight than it can hold", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const waiting = Array.from({ length: 1_024 }, () =>
      fault(connection.request({ method: "tools/call", params: { name: "hang" } })),
    );
    expect(await fault(connection.request({ method: "tools/call", params: { name: "echo" } }))).to.equal(
      "UPSTREAM_BUSY upstream has no free connection: expected at most 1024 requests in flight",
    );
    await connection.close();
    expect(new Set(await Promise.all(waiting))).to.deep.equal(
      new Set(["UPSTREAM_UNAVAILABLE upstream unavailable: the connection was closed"]),
    );
  });
});
