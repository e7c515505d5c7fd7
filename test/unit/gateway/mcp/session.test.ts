import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonRpcRequest } from "../../../../core/action/json-rpc.ts";
import { McpSession } from "../../../../core/gateway/mcp/session.ts";
import { UpstreamGroup } from "../../../../core/upstream/group.ts";

const question: JsonRpcRequest = { jsonrpc: "2.0", id: 1, method: "roots/list" };

function openSession(): McpSession {
  const owner = {
    principal: { id: "p", tenant: "acme", role: "viewer", keyId: "k" },
    client: { name: "c", version: "1", address: "127.0.0.1" },
    capabilities: {},
  } as const;
  return new McpSession("s", owner, new UpstreamGroup([], new Set(), () => undefined));
}

/** What it rejects with. Throws when it does neither within a turn of the event loop. */
async function refusal(asked: Promise<unknown>): Promise<unknown> {
  const late = new Promise((_, reject) => setImmediate(() => reject(new Error("expected an end, got none"))));
  return Promise.race([asked, late]).catch((error: unknown) => error);
}

describe("McpSession.ask(request, signal)", () => {
  it("rejects with the signal's reason when that aborts, and at once where it has", async () => {
    const [session, reason] = [openSession(), new GatewayError("CANCELLED")];
    const abort = new AbortController();
    const asked = session.ask(question, abort.signal);
    abort.abort(reason);
    expect(await refusal(asked)).to.equal(reason);
    expect(await refusal(session.ask(question, abort.signal))).to.equal(reason);
  });

  it("keeps no place for questions that were given up", async () => {
    const session = openSession();
    const given = AbortSignal.abort(new GatewayError("CANCELLED"));
    for (let count = 0; count < 100; count++) await refusal(session.ask(question, given));
    const asked = session.ask(question, new AbortController().signal);
    expect(session.answer({ jsonrpc: "2.0", id: "gateway-1", result: { roots: [] } })).to.equal(true);
    expect(await asked).to.deep.include({ result: { roots: [] } });
  });

  it("has room for 64 at a time", async () => {
    const session = openSession();
    const ask = () => session.ask(question, new AbortController().signal);
    const open = Array.from({ length: 64 }, ask);
    expect(await refusal(ask()))
      .to.be.an.instanceOf(GatewayError)
      .with.property(
        "message",
        "the client has too many open requests: expected at most 64 open questions to the client",
      );
    for (let id = 1; id <= 64; id++) session.answer({ jsonrpc: "2.0", id: `gateway-${id}`, result: {} });
    expect((await Promise.all(open)).length).to.equal(64);
  });
});
