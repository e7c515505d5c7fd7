import type { ServerResponse } from "node:http";
import { expect } from "chai";
import type { JsonRpcNotification, JsonRpcResponse } from "../../../core/action/json-rpc.ts";
import type { UpstreamConfig } from "../../../core/config/gateway-config.ts";
import type { Exchange } from "../../../core/upstream/connection.ts";
import {
  type Answer,
  call,
  closeAll,
  fault,
  hostile,
  http,
  json,
  legacyHttp,
  openGroup,
  startHttp,
  textOf,
} from "./fixture.ts";

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

/** Answers tools/call with these texts, an event each, and then ends the stream where `isEnded`. */
function streaming(texts: (id: number) => readonly string[], isEnded = true): Answer {
  return legacyHttp(({ message }, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const text of texts(message.id as number)) response.write(`data: ${text}\n\n`);
    if (isEnded) response.end();
  });
}

const answerOf = (id: number): string => JSON.stringify({ jsonrpc: "2.0", id, result: says(long) });
const note = (data: string): string =>
  JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { data } });

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
    // Amid its serialising, and behind; before it is read, amid the scan and behind it, and after the parser.
    expect(pauses).to.be.at.least(2 + 1 + 2 + 1);
  });

  it("takes no turns where it is short", async () => {
    expect(textOf(await callWith(legacyHttp(echo), { a: 1 }))).to.equal('{"name":"x","arguments":{"a":1}}');
    expect(pauses).to.equal(0);
  });

  it("is read over turns of its own where nobody gives it some", async () => {
    const answer = await callWith(legacyHttp(echo), { long }, { pause: undefined as never });
    expect(textOf(answer)).to.include(long);
  });

  it("is read over several turns from an event stream, which may end meanwhile [S76]", async () => {
    expect(
      textOf(
        await callWith(
          streaming((id) => [answerOf(id)]),
          {},
        ),
      ),
    ).to.equal(long);
    expect(pauses).to.be.at.least(1 + 2 + 1);
  });

  it("is passed in its place among those of its event stream", async () => {
    const heard: string[] = [];
    const onNotification = ({ params }: JsonRpcNotification): void => void heard.push(String(params?.data));
    const answer = streaming((id) => [note("before"), note(long), note("behind"), answerOf(id), note("late")]);
    expect(textOf(await callWith(answer, {}, { onNotification }))).to.equal(long);
    expect(heard).to.deep.equal(["before", long, "behind"]);
    expect(pauses).to.be.at.least(2 * (1 + 2 + 1));
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
    it(`fails its request for ${name}`, async () => {
      expect(await fault(callWith(answering(text), {}))).to.match(expected);
      expect(pauses).to.be.greaterThan(1);
    });
  }

  // Longer than an upstream may be silent.
  const late = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, pauses++ === 0 ? 2_500 : 0));

  for (const [form, answer] of [
    ["", answering(answerOf)],
    [" in an event stream", streaming((id) => [answerOf(id)])],
  ] as const) {
    it(`is not late where it waits for its turn${form}`, async () => {
      expect(textOf(await callWith(answer, {}, { pause: late }))).to.equal(long);
    });
  }

  it("is no answer where it is a notification: the time to answer runs again from there", async () => {
    let heard = 0;
    const onNotification = (): void => void heard++;
    const answer = streaming(() => [note(long)], false);
    expect(await fault(callWith(answer, {}, { pause: late, onNotification }))).to.match(/^UPSTREAM_TIMEOUT /);
    expect(heard).to.equal(1);
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

describe("a long message over a pipe", () => {
  afterEach(closeAll);

  /** Calls with long and short arguments at once; returns what was called in the order of the answers. */
  async function callAll(config: UpstreamConfig): Promise<readonly string[]> {
    const { group } = openGroup(config);
    const answered: string[] = [];
    const ask = async (args: object): Promise<void> => {
      answered.push(textOf(await call(group, "echo", args)));
    };
    await ask({ a: 1 });
    const all = [{ long }, { a: 2 }, { long, b: 1 }, { a: 3 }];
    await Promise.all(all.map(ask));
    expect(answered.toSorted()).to.deep.equal(
      [{ a: 1 }, ...all].map((args) => JSON.stringify({ name: "echo", arguments: args })).toSorted(),
    );
    return answered;
  }

  it("of a process is read in its place, and so are its last words [S76]", async () => {
    const sizes = (await callAll(hostile())).map(({ length }) => length > long.length);
    expect(sizes).to.deep.equal([false, true, false, true, false]);
    const { group } = openGroup(hostile());
    expect(textOf(await call(group, "answer_and_die", { long }))).to.equal(`last words ${long}`);
  });

  it("in an event stream is read in its place [S76]", async () => {
    let stream: ServerResponse | undefined;
    const written: string[] = [];
    const { url } = await startHttp(({ method, message: { id, method: called, params } }, response) => {
      if (method === "GET") {
        stream = response;
        response.writeHead(200, { "content-type": "text/event-stream" }).write("event: endpoint\ndata: /m\n\n");
        return;
      }
      response.writeHead(202).end();
      const handshake = { protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo: {} };
      const result = called === "initialize" ? handshake : says(JSON.stringify(params));
      if (called === "tools/call") written.push(JSON.stringify(params));
      if (id !== undefined) stream?.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
    });
    expect(await callAll({ ...http(url), transport: "sse" })).to.deep.equal(written);
  });
});
