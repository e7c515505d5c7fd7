import { expect } from "chai";
import type { JsonRpcResponse } from "../../../core/action/json-rpc.ts";
import type { Exchange } from "../../../core/upstream/connection.ts";
import { type Answer, closeAll, fault, http, json, legacyHttp, openGroup, startHttp, textOf } from "./fixture.ts";

const long = "x".repeat(700_000);
const says = (text: string): object => ({ content: [{ type: "text", text }] });

const echo: Answer = ({ message }, response) => {
  json(response, { jsonrpc: "2.0", id: message.id, result: says(JSON.stringify(message.params)) });
};

/** Answers tools/call with this text. */
function answering(text: (id: number) => string): Answer {
  return legacyHttp(({ message }, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(text(message.id as number));
  });
}

/** A response that holds a long text, but for its end. */
function beginning(id: number): string {
  return `{"jsonrpc":"2.0","id":${id},"result":{"long":"${long}"`;
}

describe("a long message over Streamable HTTP", () => {
  let pauses = 0;
  beforeEach(() => {
    pauses = 0;
  });
  afterEach(closeAll);

  async function callWith(answer: Answer, args: object, more: Partial<Exchange> = {}): Promise<JsonRpcResponse> {
    const fixture = await startHttp(answer);
    const { group } = openGroup(http(fixture.url));
    const connection = await group.connection("up");
    const pause = async (): Promise<void> => void pauses++;
    const request = { method: "tools/call", params: { name: "x", arguments: { ...args } } };
    return connection.request(request, { pause, ...more });
  }

  it("is sent in a turn of its own, and read over several [S76]", async () => {
    const answer = await callWith(legacyHttp(echo), { long });
    expect(textOf(answer)).to.equal(JSON.stringify({ name: "x", arguments: { long } }));
    // Before it is sent; before it is read, after each of two parts of the scan, and after the parser.
    expect(pauses).to.equal(1 + 1 + 2 + 1);
  });

  it("takes no turns where it is short", async () => {
    expect(textOf(await callWith(legacyHttp(echo), { a: 1 }))).to.equal('{"name":"x","arguments":{"a":1}}');
    expect(pauses).to.equal(0);
  });

  it("is read at once where nobody gives it turns", async () => {
    const answer = await callWith(legacyHttp(echo), { long }, { pause: undefined as never });
    expect(textOf(answer)).to.include(long);
  });

  const invalid: Readonly<Record<string, readonly [text: (id: number) => string, expected: RegExp]>> = {
    "a duplicate key": [(id) => `${beginning(id)},"a":1,"a":1}}`, /^UPSTREAM_INVALID .*duplicate key `a`/],
    "a missing end": [(id) => `${beginning(id)}}`, /^UPSTREAM_INVALID .*malformed JSON: unexpected /],
    "too many levels": [(id) => `${beginning(id)},"a":${"[".repeat(70)}`, /^UPSTREAM_INVALID .*at most 64 levels/],
    "another id": [
      (id) => `${beginning(id + 1)}}}`,
      /^UPSTREAM_INVALID .*expected the id of this request, got another$/,
    ],
    "a notification": [
      () => `{"jsonrpc":"2.0","method":"x","params":{"long":"${long}"}}`,
      /^UPSTREAM_INVALID .*expected an answer, got a notification$/,
    ],
  };
  for (const [name, [text, expected]] of Object.entries(invalid)) {
    it(`fails its request for ${name}, in the words for a short one`, async () => {
      const said = await fault(callWith(answering(text), {}));
      expect(said).to.match(expected);
      expect(pauses).to.be.greaterThan(1);
      expect(await fault(callWith(answering(text), {}, { pause: undefined as never }))).to.equal(said);
    });
  }

  it("is not late where it waits for its turn", async () => {
    const answer = answering((id) => JSON.stringify({ jsonrpc: "2.0", id, result: says(long) }));
    // Longer than an upstream may be silent.
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, pauses++ === 0 ? 2_500 : 0));
    expect(textOf(await callWith(answer, {}, { pause }))).to.equal(long);
  });

  it("is never sent once its caller has cancelled", async () => {
    let calls = 0;
    const cancelled = new AbortController();
    const answer = legacyHttp((request, response) => {
      if (request.message.method === "tools/call") calls++;
      echo(request, response);
    });
    const pause = async (): Promise<void> => cancelled.abort(new Error("no longer wanted"));
    expect(await fault(callWith(answer, { long }, { pause, signal: cancelled.signal }))).to.include("no longer wanted");
    await closeAll();
    expect(calls).to.equal(0);
  });
});
