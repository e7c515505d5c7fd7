import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonRpcRequest } from "../../../../core/action/json-rpc.ts";
import type { Principal } from "../../../../core/action/principal.ts";
import { Reply } from "../../../../core/gateway/mcp/reply.ts";
import { McpSession } from "../../../../core/gateway/mcp/session.ts";
import { SessionTable } from "../../../../core/gateway/mcp/session-table.ts";
import { SseConnection } from "../../../../core/gateway/mcp/sse.ts";
import { UpstreamGroup } from "../../../../core/upstream/group.ts";
import { dial } from "../../../support/wire.ts";

const principal: Principal = { id: "p", tenant: "acme", role: "viewer", keyId: "k" };
const call: JsonRpcRequest = { jsonrpc: "2.0", id: 1, method: "tools/list" };

describe("SseConnection", () => {
  let server: Server;
  let client: Socket;
  let table: SessionTable;
  let ended: string[];
  let connection: SseConnection;

  beforeEach(async () => {
    server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const request = once(server, "request");
    client = await dial(url);
    client.resume().write("GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const [, response] = (await request) as [unknown, ServerResponse];
    ended = [];
    let count = 0;
    const shares = { keySharePercent: 100, tenantSharePercent: 100 };
    const ports = { elapsedMs: () => performance.now(), newId: () => `id-${++count}`, onCount: () => undefined };
    table = new SessionTable({ maxSessions: 1, shares, idleMs: 1_000, ...ports });
    const stream = new Reply(response, true);
    connection = await table.add(
      principal,
      async (id) => new SseConnection(id, principal, stream, async (scope) => void ended.push(scope.id)),
    );
    stream.onClosed(() => void table.end(connection));
    stream.announce("/x");
  });

  afterEach(async () => {
    client.destroy();
    await table.closeAll();
    server.close();
  });

  const openSession = async (id: string): Promise<McpSession> => {
    const owner = { principal, client: { name: "c", version: "1", address: "127.0.0.1" }, capabilities: {} };
    return new McpSession(id, owner, new UpstreamGroup([], new Set(), () => undefined));
  };

  it("ends its scope once, whoever ends it and however often", async () => {
    await connection.add(openSession);
    client.destroy();
    await Promise.all([table.end(connection), table.endRevoked(() => false), table.closeAll()]);
    await table.end(connection);
    expect(ended).to.deep.equal([connection.scope.id]);
  });

  it("ends its scope, and gives its place back, only when nothing of it is in flight", async () => {
    await connection.add(openSession);
    connection.accept(call);
    const ending = table.end(connection);
    await turn();
    expect(ended).to.deep.equal([]);
    const refusal = await table.add(principal, openSession).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(GatewayError).with.property("code", "SESSION_LIMIT");
    connection.finish(1, null);
    await ending;
    expect(ended).to.deep.equal([connection.scope.id]);
    expect((await table.add(principal, openSession)).id).to.match(/^id-/);
  });

  it("waits for a handshake that is under way, which then comes to nothing", async () => {
    let open: (session: McpSession) => void = () => undefined;
    const opened = new Promise<McpSession>((resolve) => {
      open = resolve;
    });
    const handshake = connection.add(() => opened).catch((error: unknown) => error);
    const ending = table.end(connection);
    await turn();
    expect(ended).to.deep.equal([]);
    open(await openSession(connection.id));
    expect(await handshake)
      .to.be.instanceOf(GatewayError)
      .with.property("code", "CANCELLED");
    await ending;
    expect(connection.session).to.equal(null);
    expect(ended).to.deep.equal([connection.scope.id]);
  });

  it("ends no scope where no session was opened", async () => {
    const failed = await connection.add(() => Promise.reject(new GatewayError("EVIDENCE_UNAVAILABLE"))).catch(String);
    expect(failed).to.include("evidence cannot be written");
    await table.end(connection);
    expect(ended).to.deep.equal([]);
  });

  it("ends when the gateway stops once it has answered, and takes nothing more", async () => {
    await connection.add(openSession);
    connection.accept(call);
    table.endStreams();
    expect(() => connection.accept({ ...call, id: 2 })).to.throw(GatewayError, "the gateway is stopping");
    await turn();
    expect(connection.stream.open).to.equal(true);
    connection.finish(1, { jsonrpc: "2.0", id: 1, result: {} });
    expect(connection.stream.open).to.equal(false);
  });
});
