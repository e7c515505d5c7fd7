import { expect } from "chai";
import {
  type Answer,
  call,
  closeAll,
  fault,
  http,
  json,
  legacyHttp,
  listener,
  openFleet,
  openGroup,
  scope,
  startHttp,
  textOf,
  until,
} from "./fixture.ts";

const says = (text: string): object => ({ content: [{ type: "text", text }] });

const echo: Answer = ({ message }, response) => {
  json(response, { jsonrpc: "2.0", id: message.id, result: says(JSON.stringify(message.params)) });
};

/** Answers tools/call with this status, type and body. */
function raw(status: number, type: string, body: (id: number) => string, headers: Record<string, string> = {}): Answer {
  return legacyHttp(({ message }, response) => {
    response.writeHead(status, { "content-type": type, ...headers });
    response.end(body(message.id as number));
  });
}

/** Answers tools/call with a body that comes byte by byte. */
function slow(body: (id: number) => Buffer): Answer {
  return legacyHttp(async ({ message }, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    for (const byte of body(message.id as number)) {
      response.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    response.end();
  });
}

describe("an upstream over Streamable HTTP", () => {
  afterEach(closeAll);

  it("is sent configured headers, its session and its revision, and nothing else", async () => {
    const fixture = await startHttp(legacyHttp(echo));
    const { group } = openGroup({ ...http(fixture.url), headers: { authorization: "Bearer upstream" } });
    const connection = await group.connection("up");
    await connection.request({ method: "tools/call", params: { name: "x" } });
    const { headers } = fixture.requests.at(-1) as (typeof fixture.requests)[number];
    expect(headers).to.deep.equal({
      host: new URL(fixture.url).host,
      connection: "keep-alive",
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: "Bearer upstream",
      "mcp-session-id": "s-1",
      "mcp-protocol-version": "2025-11-25",
      "content-length": headers["content-length"],
    });
  });

  const nonsense: Readonly<Record<string, readonly [Answer, RegExp]>> = {
    "bad JSON": [raw(200, "application/json", () => "{"), /^UPSTREAM_INVALID .*malformed JSON/],
    "duplicate keys": [
      raw(200, "application/json", (id) => `{"jsonrpc":"2.0","id":${id},"result":{"a":1,"a":1}}`),
      /duplicate key `a`/,
    ],
    "another id": [
      raw(200, "application/json", (id) => `{"jsonrpc":"2.0","id":${id + 1},"result":{}}`),
      /^UPSTREAM_INVALID .*expected the id of this request, got another$/,
    ],
    "a batch": [raw(200, "application/json", (id) => `[{"jsonrpc":"2.0","id":${id},"result":{}}]`), /got a batch$/],
    "a notification": [
      raw(200, "application/json", () => '{"jsonrpc":"2.0","method":"x"}'),
      /expected an answer, got a notification$/,
    ],
    HTML: [raw(200, "text/html", () => "<html>"), /expected an answer of application\/json or text\/event-stream$/],
    "an encoded body": [
      raw(200, "application/json", () => "x", { "content-encoding": "gzip" }),
      /expected an answer without content-encoding$/,
    ],
    "bad UTF-8 that comes in pieces": [
      slow(() => Buffer.from('{"jsonrpc":"2.0\xff', "latin1")),
      /^UPSTREAM_INVALID .*malformed JSON: expected UTF-8, got invalid bytes$/,
    ],
    "a character that is cut off": [
      slow(() => Buffer.from('"\u20ac').subarray(0, 3)),
      /^UPSTREAM_INVALID .*malformed JSON: expected UTF-8, got invalid bytes$/,
    ],
    "a byte order mark in an answer of pieces": [
      slow((id) => Buffer.from(`\ufeff{"jsonrpc":"2.0","id":${id},"result":{}}`)),
      /^UPSTREAM_INVALID .*expected no byte order mark$/,
    ],
    "too many bytes": [
      raw(200, "application/json", (id) => `{"jsonrpc":"2.0","id":${id},"result":{"a":"${"x".repeat(1_100_000)}"}}`),
      /expected a message of at most 1000000 bytes, got more$/,
    ],
    "too many levels": [
      raw(
        200,
        "application/json",
        (id) => `{"jsonrpc":"2.0","id":${id},"result":{"a":${"[".repeat(1_000)}${"]".repeat(1_000)}}}`,
      ),
      /expected at most 64 levels/,
    ],
    "a redirect": [
      raw(307, "text/plain", () => "", { location: "http://127.0.0.1:1/" }),
      /^UPSTREAM_INVALID .*expected no redirect, got HTTP 307$/,
    ],
    "202": [raw(202, "application/json", () => ""), /^UPSTREAM_UNAVAILABLE .*HTTP 202$/],
    "401": [
      raw(401, "text/plain", () => "no"),
      /^UPSTREAM_UNAVAILABLE .*the upstream refused the gateway \(HTTP 401\)$/,
    ],
    "429": [raw(429, "text/plain", () => "no"), /^UPSTREAM_BUSY .*the upstream answered HTTP 429$/],
    "500": [
      raw(500, "text/plain", () => "secret stack trace"),
      /^UPSTREAM_UNAVAILABLE .*the upstream answered HTTP 500$/,
    ],
    "bad UTF-8 in a stream": [
      legacyHttp((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(Buffer.from('data: {"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}\n\n', "latin1"));
      }),
      /expected UTF-8/,
    ],
    "an endless event": [
      raw(200, "text/event-stream", () => `data: ${"x".repeat(1_200_000)}`),
      /expected an event of at most 1000000 bytes/,
    ],
    "endless comments": [
      raw(200, "text/event-stream", () => ": x\n".repeat(600_000)),
      /expected an event of at most 1000000 bytes/,
    ],
    "a stream without an answer": [
      raw(200, "text/event-stream", () => 'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'),
      /^UPSTREAM_UNAVAILABLE .*the stream ended without an answer$/,
    ],
    "a stream with another id": [
      raw(200, "text/event-stream", () => 'data: {"jsonrpc":"2.0","id":77,"result":{}}\n\n'),
      /expected the id of this request, got another$/,
    ],
    "a flood": [
      raw(200, "text/event-stream", () => 'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'.repeat(8_000)),
      /the upstream floods the gateway with messages$/,
    ],
  };
  for (const [name, [answer, expected]] of Object.entries(nonsense)) {
    it(`fails the one request for ${name}`, async () => {
      const fixture = await startHttp(answer);
      const { group, events } = openGroup(http(fixture.url));
      expect(await fault(call(group, "x"))).to.match(expected);
      expect(events.filter(({ kind }) => kind === "upstream_closed")).to.deep.equal([]);
    });
  }

  it("reads characters of which the bytes come one by one", async () => {
    const text = "\u017c \u20ac \ud83d\ude00";
    const fixture = await startHttp(
      slow((id) => Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: says(text) }))),
    );
    const { group } = openGroup(http(fixture.url));
    expect(textOf(await call(group, "x"))).to.equal(text);
  });

  it("follows no redirect", async () => {
    const other = await startHttp(legacyHttp(echo));
    const fixture = await startHttp(raw(308, "text/plain", () => "", { location: other.url }));
    const { group } = openGroup(http(fixture.url));
    await fault(call(group, "x"));
    expect(other.requests).to.deep.equal([]);
  });

  it("passes a JSON-RPC error on, whatever its status", async () => {
    const error = { code: -32000, message: "bad request" };
    const fixture = await startHttp(
      raw(400, "application/json", (id) => JSON.stringify({ jsonrpc: "2.0", id, error })),
    );
    const { group } = openGroup(http(fixture.url));
    expect(await call(group, "x")).to.deep.include({ error });
  });

  it("refuses an upstream that is not there, and says no address", async () => {
    const { group } = openGroup(http("http://127.0.0.1:9/mcp"));
    expect(await fault(call(group, "x"))).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: the connection failed (ECONNREFUSED)",
    );
  });

  it("refuses a session id that could not be a header", async () => {
    const fixture = await startHttp(legacyHttp(echo, () => "a b"));
    const { group } = openGroup(http(fixture.url));
    expect(await fault(call(group, "x"))).to.match(/expected a session id of 1 to 1024 visible ASCII characters$/);
  });

  it("hands messages on a request's own stream to that request", async () => {
    const fixture = await startHttp(
      legacyHttp(({ message }, response) => {
        if (message.method !== "tools/call") return void response.writeHead(202).end();
        response.writeHead(200, { "content-type": "text/event-stream" });
        const note = { jsonrpc: "2.0", method: "notifications/message", params: { data: "hi" } };
        const ask = { jsonrpc: "2.0", id: "q", method: "roots/list" };
        response.write(`data: ${JSON.stringify(note)}\n\ndata: ${JSON.stringify(ask)}\n\n`);
        setTimeout(
          () => response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: says("ok") })}\n\n`),
          50,
        );
      }),
    );
    const strays: string[] = [];
    const { group } = openGroup(http(fixture.url), {
      listener: listener({ onNotification: (_, { method }) => strays.push(method) }),
    });
    const connection = await group.connection("up");
    const own: string[] = [];
    const answer = await connection.request(
      { method: "tools/call", params: { name: "x" } },
      {
        onNotification: ({ method }) => own.push(method),
        onRequest: async ({ id, method }) => {
          own.push(method);
          return { jsonrpc: "2.0", id, result: { roots: [] } };
        },
      },
    );
    expect(textOf(answer)).to.equal("ok");
    expect([own, strays]).to.deep.equal([["notifications/message", "roots/list"], []]);
    await until(() => fixture.requests.some(({ body }) => body === '{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}'));
  });

  it("takes a broken stream up where it left off", async () => {
    const fixture = await startHttp((request, response) => {
      if (request.method === "GET" && request.headers["last-event-id"] === "e1") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: 2, result: says("resumed") })}\n\n`);
        return;
      }
      legacyHttp((_, reply) => {
        reply.writeHead(200, { "content-type": "text/event-stream" });
        reply.end("retry: 100\nid: e1\ndata:\n\n");
      })(request, response);
    });
    const { group } = openGroup(http(fixture.url));
    expect(textOf(await call(group, "x"))).to.equal("resumed");
  });

  it("ends its session with a DELETE", async () => {
    const fixture = await startHttp(legacyHttp(echo));
    const { group } = openGroup(http(fixture.url));
    await call(group, "x");
    await group.close();
    const last = fixture.requests.at(-1);
    expect([last?.method, last?.headers["mcp-session-id"]]).to.deep.equal(["DELETE", "s-1"]);
  });

  it("tells a legacy upstream that a request is no longer wanted", async () => {
    const fixture = await startHttp(legacyHttp(() => undefined));
    const { group } = openGroup(http(fixture.url, { timeoutMs: 100 }));
    expect(await fault(call(group, "x"))).to.match(/^UPSTREAM_TIMEOUT /);
    const told = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"timeout"}}';
    await until(() => fixture.requests.some(({ body }) => body === told));
  });

  describe("when the upstream has forgotten the session", () => {
    function forgetful(): { answer: Answer; sessions: () => number } {
      let sessions = 0;
      const handshake = legacyHttp(
        (request, response) => {
          if (request.headers["mcp-session-id"] === `s-${sessions}` && sessions > 1) echo(request, response);
          else response.writeHead(404).end();
        },
        () => `s-${++sessions}`,
      );
      return { answer: handshake, sessions: () => sessions };
    }

    it("opens a new one for a shared connection and sends each request once more", async () => {
      const { answer, sessions } = forgetful();
      const fixture = await startHttp(answer);
      const { group, events } = openGroup(http(fixture.url, { connection: "shared" }));
      const texts = (await Promise.all([1, 2, 3, 4, 5].map((n) => call(group, "x", { n })))).map(textOf);
      expect(texts.map((text) => JSON.parse(text).arguments.n)).to.deep.equal([1, 2, 3, 4, 5]);
      expect(sessions()).to.equal(2);
      expect(events.some(({ kind }) => kind === "upstream_closed")).to.equal(false);
    });

    it("tells the listener of a session's own connection", async () => {
      const fixture = await startHttp(forgetful().answer);
      const closed: string[] = [];
      const { group } = openGroup(http(fixture.url), {
        listener: listener({ onClose: (_, reason) => closed.push(reason) }),
      });
      expect(await fault(call(group, "x"))).to.equal(
        "UPSTREAM_UNAVAILABLE upstream unavailable: the upstream ended the session",
      );
      expect(closed).to.deep.equal(["upstream unavailable: the upstream ended the session"]);
    });

    it("believes a 400 without an answer too, once", async () => {
      let calls = 0;
      const fixture = await startHttp(
        legacyHttp((request, response) => {
          if (++calls === 2) echo(request, response);
          else response.writeHead(400).end("Bad Request: no valid session");
        }),
      );
      const { group } = openGroup(http(fixture.url, { connection: "shared" }));
      expect(textOf(await call(group, "x"))).to.include('"name":"x"');
      expect(await fault(call(group, "x"))).to.equal(
        "UPSTREAM_UNAVAILABLE upstream unavailable: the upstream answered HTTP 400",
      );
      expect(calls).to.equal(4);
    });

    it("gives up on one that forgets every session", async () => {
      const fixture = await startHttp(legacyHttp((_, response) => response.writeHead(404).end()));
      const { group } = openGroup(http(fixture.url, { connection: "shared" }));
      expect(await fault(call(group, "x"))).to.equal(
        "UPSTREAM_UNAVAILABLE upstream unavailable: the upstream ended the session",
      );
    });
  });

  describe("the stateless revision", () => {
    const schema = {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" }, n: { type: "number", "x-mcp-header": "N" } },
    };
    const left: string[] = [];
    const modern: Answer = ({ message, method }, response) => {
      if (method !== "POST") return void response.writeHead(405).end();
      const cache = { resultType: "complete", ttlMs: 5_000, cacheScope: "private" };
      if (message.method === "server/discover") {
        const result = { ...cache, supportedVersions: ["2026-07-28"], capabilities: { tools: {} } };
        json(response, { jsonrpc: "2.0", id: message.id, result });
      } else if (message.method === "tools/list") {
        json(response, {
          jsonrpc: "2.0",
          id: message.id,
          result: { ...cache, tools: [{ name: "x", inputSchema: schema }] },
        });
      } else if (message.params?.name === "hang") {
        response.on("close", () => left.push("hang"));
        response.writeHead(200, { "content-type": "text/event-stream" }).write(": \n\n");
      } else json(response, { jsonrpc: "2.0", id: message.id, result: { ...says("ok"), resultType: "complete" } });
    };

    it("repeats method, name and declared parameters in headers", async () => {
      const fixture = await startHttp(modern);
      const { group } = openGroup(http(fixture.url), { era: "modern" });
      await group.tools();
      await call(group, "x", { region: "Zürich", n: 1.5 });
      const headers = fixture.requests.at(-1)?.headers ?? {};
      expect(headers).to.include({
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "x",
        "mcp-param-region": "=?base64?WsO8cmljaA==?=",
      });
      expect(headers).to.not.have.any.keys("mcp-param-n", "mcp-session-id");
    });

    it("closes the stream of a request that is no longer wanted, and posts nothing", async () => {
      const fixture = await startHttp(modern);
      const { group } = openGroup(http(fixture.url), { era: "modern" });
      const connection = await group.connection("up");
      const controller = new AbortController();
      const waiting = connection.request(
        { method: "tools/call", params: { name: "hang" } },
        { signal: controller.signal },
      );
      await until(() => fixture.requests.some(({ body }) => body.includes('"hang"')));
      controller.abort(new Error("enough"));
      expect(await fault(waiting)).to.equal("Error: enough");
      await until(() => left.length === 1);
      expect(fixture.requests.some(({ body }) => body.includes("cancelled"))).to.equal(false);
    });

    it("is found by a legacy group too, and answered in its words", async () => {
      const fixture = await startHttp((request, response) => {
        if (request.message.method !== "initialize") return modern(request, response);
        response.writeHead(400, { "content-type": "application/json" });
        response.end(
          JSON.stringify({ jsonrpc: "2.0", id: request.message.id, error: { code: -32022, message: "no" } }),
        );
      });
      const { group } = openGroup(http(fixture.url));
      expect(await call(group, "x")).to.deep.include({ result: says("ok") });
      expect((await group.connection("up")).server.era).to.equal("modern");
    });
  });

  it("refuses more connections than configured", async () => {
    const fixture = await startHttp(legacyHttp(echo));
    const { fleet } = openFleet([http(fixture.url, { maxConnections: 2 })]);
    await Promise.all([call(fleet.group(scope()), "x"), call(fleet.group(scope()), "x")]);
    expect(await fault(call(fleet.group(scope()), "x"))).to.equal(
      "UPSTREAM_BUSY upstream has no free connection: expected at most 2 connections to `up`; try again in 1 s",
    );
  });

  it("closes a session's idle connection and opens it again when needed", async () => {
    const fixture = await startHttp(legacyHttp(echo));
    const closed: string[] = [];
    const { group, fleet } = openGroup(http(fixture.url, { idleMs: 60 }), {
      listener: listener({ onClose: (_, reason) => closed.push(reason) }),
    });
    await call(group, "x");
    await until(() => fleet.health()[0]?.connections === 0);
    await call(group, "x");
    expect(fixture.requests.filter(({ body }) => body.includes('"initialize"'))).to.have.length(2);
    expect(closed).to.deep.equal([]);
  });
});
