import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { ModelApi } from "../../../../core/action/model-api.ts";
import { StreamReader } from "../../../../core/provider/wire/stream-reader.ts";
import { type ModelProvider, type Script, scripts } from "../../../fixture/model-provider.ts";
import { answerEvents } from "../../../fixture/model-reply.ts";
import { drainStream, FleetWorld, httpConfig, providerKey } from "../fixture.ts";

let world: FleetWorld;
let provider: ModelProvider;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = new FleetWorld();
    provider = await world.provider();
  });
  afterEach(() => world.close());
}

const reply = { text: "One two, three.", calls: [{ name: "look", arguments: { up: "ä" } }] };

/** The text, the first tool called, and what it was given. */
function textsOf(api: ModelApi, body: JsonObject): readonly unknown[] {
  if (api === "messages") {
    const [text, call] = body.content as readonly JsonObject[];
    return [text?.text, call?.name, (call?.input as JsonObject | undefined)?.up];
  }
  const [choice] = body.choices as unknown as readonly {
    message: { content: string; tool_calls: readonly ToolCall[] };
  }[];
  const call = choice?.message.tool_calls[0]?.function;
  return [choice?.message.content, call?.name, (JSON.parse(call?.arguments ?? "{}") as JsonObject).up];
}

interface ToolCall {
  readonly function: { readonly name: string; readonly arguments: string };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(5)) if (await condition()) return;
  throw new Error("expected it within 5 s");
}

describe("a streamed answer", () => {
  inOwnWorld();

  for (const [api, type] of [
    ["chat", "openai"],
    ["messages", "anthropic"],
  ] as const) {
    it(`comes byte for byte as the provider sent it: ${api}`, async () => {
      world.open([httpConfig(provider, { type })]);
      const whole = `: hello\n\n${answerEvents(api, reply).join("")}`;
      for (const size of [1, 7, 1_000, whole.length]) {
        const bytes = Buffer.from(whole);
        const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        );
        provider.next(scripts.streams(parts));
        const { text, error } = await drainStream(await world.stream({ api }));
        expect(error).to.equal(undefined);
        expect(text).to.equal(whole);
      }
      expect(provider.calls[0]?.headers.accept).to.equal("text/event-stream");
    });
  }

  for (const [api, type] of [
    ["chat", "anthropic"],
    ["messages", "openai"],
  ] as const) {
    it(`says the same in the other API: a ${api} client of ${type}`, async () => {
      world.open([httpConfig(provider, { type })]);
      provider.script = scripts.answers(reply);
      const whole = await world.whole({ api });
      const reader = new StreamReader(api);
      for await (const event of await world.stream({ api })) reader.read(event);
      expect(textsOf(api, reader.body())).to.deep.equal(textsOf(api, whole.body));
      expect(textsOf(api, whole.body)).to.deep.equal(["One two, three.", "look", "ä"]);
    });

    it(`ends in the client's own error where the provider ends in one: a ${api} client of ${type}`, async () => {
      world.open([httpConfig(provider, { type })]);
      const said = JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "too much" } });
      const error =
        type === "openai" ? `data: ${said.replace('"type":"error",', "")}\n\n` : `event: error\ndata: ${said}\n\n`;
      provider.next(scripts.stalls([answerEvents(type === "openai" ? "chat" : "messages", reply)[0] ?? "", error]));
      const { text, error: thrown } = await drainStream(await world.stream({ api }));
      expect(thrown).to.equal(undefined);
      expect(text).to.match(api === "chat" ? /data: \{"error":\{.*too much.*\n\n$/ : /event: error\n.*too much.*\n\n$/);
      expect(world.fleet.health()[0]).to.include({
        lastFault: "PROVIDER_UNAVAILABLE",
        failures: 1,
      });
    });
  }

  const head = answerEvents("chat", reply).slice(0, 2);
  const failure = 'data: {"error":{"message":"too much","type":"server_error"}}\n\n';
  const done = "data: [DONE]\n\n";
  for (const [what, parts, told] of [
    ["with it, where the provider sent it at once", [failure + done], failure + done],
    ["with it, where it came by itself, after a comment", [failure, ": ping\n\n", done], `${failure}: ping\n\n${done}`],
    ["with it, in pieces", [`${failure}da`, "ta: [DO", "NE]\n\n"], failure + done],
    ["without it, where the provider sent none", [failure], failure],
    ["without it, where the mark is cut", [failure, done.slice(0, -3)], failure],
    ["without what the provider sends in its place", [failure, `${head[1]}${done}`], failure],
    ["with one, where the provider sends two", [failure, done + done], failure + done],
  ] as const) {
    it(`ends in the provider's error and the mark of the end: ${what}`, async () => {
      world.open([httpConfig(provider)]);
      provider.next(scripts.streams([...head, ...parts], 20));
      const { text, error } = await drainStream(await world.stream());
      expect(error).to.equal(undefined);
      expect(text).to.equal(head.join("") + told);
      expect(world.fleet.health()[0]).to.include({
        lastFault: "PROVIDER_UNAVAILABLE",
        failures: 1,
        requestsInFlight: 0,
      });
    });
  }

  it("ends in the provider's error where the provider goes silent after it, and frees the connection", async () => {
    world.open([httpConfig(provider, { idleTimeoutMs: 600_000, maxTimeoutMs: 600_000 })]);
    provider.next(scripts.stalls([...head, failure]));
    const { text, error } = await drainStream(await world.stream());
    expect(error).to.equal(undefined);
    expect(text).to.equal(head.join("") + failure);
    await until(() => provider.calls[0]?.brokenAtMs !== undefined);
  });

  it("ends in an error that is one member of a chunk among others", async () => {
    world.open([httpConfig(provider)]);
    const chunk = `data: {"id":"a","choices":[{"index":0,"delta":{}}],"error":{"message":"gone"}}\n\n`;
    provider.next(scripts.streams([...head, chunk, done]));
    expect((await drainStream(await world.stream())).text).to.equal(head.join("") + chunk + done);
    expect(world.fleet.health()[0]).to.include({ lastFault: "PROVIDER_UNAVAILABLE", failures: 1 });
    const words = `data: {"choices":[{"index":0,"delta":{"content":"{\\"error\\":1}"},"finish_reason":"error"}],"error":null}\n\n`;
    provider.next(scripts.streams([...head, words, done]));
    expect((await drainStream(await world.stream())).text).to.equal(head.join("") + words + done);
    expect(world.fleet.health()[0]).to.include({ failures: 0 });
  });

  it("is over with its last event, and a connection that is held open after it is given up", async () => {
    world.open([httpConfig(provider, { idleTimeoutMs: 60_000 })]);
    provider.next(scripts.stalls([...answerEvents("chat", reply), "data: more\n\n"]));
    const { text, error } = await drainStream(await world.stream());
    expect(error).to.equal(undefined);
    expect(text).to.match(/data: \[DONE\]\n\n$/);
    await until(() => provider.calls[0]?.brokenAtMs !== undefined);
    expect(world.fleet.health()[0]).to.include({ failures: 0, requestsInFlight: 0 });
  });

  it("lets the connection be used again", async () => {
    world.open([httpConfig(provider)]);
    for (let time = 0; time < 5; time++) await drainStream(await world.stream());
    expect(await provider.connections(), "the next may begin before the last byte of the one before").to.be.below(3);
  });

  const [first = "", second = "", ...rest] = answerEvents("chat", reply);
  const table: Readonly<Record<string, readonly [Script, string, RegExp]>> = {
    "breaks off": [scripts.dies([first, second]), "PROVIDER_UNAVAILABLE", /the connection failed/],
    "ends before its last event": [scripts.streams([first, second]), "PROVIDER_INVALID", /before its last event/],
    "ends inside an event": [scripts.streams([first, second.slice(0, -9)]), "PROVIDER_INVALID", /inside an event/],
    stalls: [scripts.stalls([first]), "PROVIDER_TIMEOUT", /since the last byte/],
    "is no UTF-8": [scripts.streams([first, Buffer.from([0x64, 0x3a, 0xff, 0x0a, 0x0a])]), "PROVIDER_INVALID", /UTF-8/],
    "has an endless event": [
      scripts.floods("data: x".repeat(10_000), { count: 0 }),
      "PROVIDER_INVALID",
      /bytes, got more/,
    ],
    "never ends": [scripts.floods(`${first}`.repeat(500), { count: 0 }), "PROVIDER_INVALID", /stream of at most/],
    "shows the gateway's own key [S12]": [
      scripts.streams([first, `data: {"a":"${providerKey}"}\n\n`, ...rest]),
      "PROVIDER_INVALID",
      /own key/,
    ],
  };
  /** Where the provider would go on. */
  const holds = new Set(["stalls", "has an endless event", "never ends"]);
  for (const [name, [script, code, message]] of Object.entries(table)) {
    it(`rejects where it ${name}, and frees the connection`, async () => {
      world.open([httpConfig(provider, { idleTimeoutMs: name === "stalls" ? 150 : 20_000 })]);
      provider.next(script);
      const { error } = await drainStream(await world.stream());
      expect(error).to.have.property("code", code);
      expect((error as Error).message).to.match(message);
      expect(world.events.map((event) => event.kind === "provider_attempt_failed" && event.code)).to.deep.equal([code]);
      expect(JSON.stringify(world.events)).to.not.include(providerKey);
      if (holds.has(name)) await until(() => provider.calls[0]?.brokenAtMs !== undefined);
      expect(world.fleet.health()[0]?.requestsInFlight).to.equal(0);
    });
  }

  it("is a failure, which another provider may mend, where nothing follows the head", async () => {
    world.open([httpConfig(provider, { firstByteTimeoutMs: 100 })]);
    provider.next(scripts.stalls([]), scripts.streams([]));
    for (const code of ["PROVIDER_TIMEOUT", "PROVIDER_INVALID"]) {
      const { error, mayFallBack, outcome } = await world.failed({ stream: true });
      expect([error.code, mayFallBack, outcome]).to.deep.equal([code, true, "unknown"]);
    }
  });

  it("is a failure where the provider answers otherwise", async () => {
    world.open([httpConfig(provider)]);
    provider.next(scripts.says(200, "{}"));
    expect((await world.failed({ stream: true })).error.message).to.match(/type `text\/event-stream`/);
    provider.next(scripts.says(500));
    expect((await world.failed({ stream: true })).error.code).to.equal("PROVIDER_UNAVAILABLE");
  });
});

describe("a client that goes away", () => {
  inOwnWorld();

  const [first = ""] = answerEvents("chat", reply);

  for (const [name, script] of [
    ["before the answer began", scripts.stalls()],
    ["while the answer is under way", scripts.stalls([first])],
  ] as const) {
    it(`frees the provider's connection at once: ${name}`, async () => {
      world.open([httpConfig(provider, { firstByteTimeoutMs: 600_000, idleTimeoutMs: 600_000, maxRetries: 3 })]);
      provider.next(script);
      const gone = new AbortController();
      const ending = world.ask({ stream: true, signal: gone.signal }).then(async (answer) => {
        return answer.kind === "stream" ? (await drainStream(answer.events)).error : answer;
      });
      await until(() => provider.calls.length === 1);
      await sleep(50);
      gone.abort();
      const end = (await ending) as { code?: string; error?: { code: string } };
      expect(end.code ?? end.error?.code).to.equal("CANCELLED");
      await until(() => provider.calls[0]?.brokenAtMs !== undefined);
      expect(provider.calls[0]?.brokenAtMs).to.be.a("number");
      expect(provider.calls).to.have.length(1);
      expect(world.fleet.health()[0]).to.include({ requestsInFlight: 0, failures: 0 });
    });
  }

  it("frees it by leaving the loop, and without ever having read", async () => {
    world.open([httpConfig(provider, { idleTimeoutMs: 60_000 })]);
    provider.next(scripts.stalls([first]), scripts.stalls([first]));
    for await (const _ of await world.stream()) break;
    await until(() => provider.calls[0]?.brokenAtMs !== undefined);
    const gone = new AbortController();
    await world.stream({ signal: gone.signal });
    gone.abort();
    await until(() => provider.calls[1]?.brokenAtMs !== undefined);
    expect(world.fleet.health()[0]?.requestsInFlight).to.equal(0);
  });

  it("sends nothing at all where it went before", async () => {
    world.open([httpConfig(provider)]);
    const { error, outcome } = await world.failed({ signal: AbortSignal.abort() });
    expect([error.code, outcome]).to.deep.equal(["CANCELLED", "error"]);
    expect(provider.calls).to.have.length(0);
  });
});

describe("a client that reads slowly", () => {
  inOwnWorld();

  it("makes the provider wait: 10,000 events of 10 kB are not held", async () => {
    world.open([httpConfig(provider, { idleTimeoutMs: 300 })]);
    const event = `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(10_000)}"}}]}\n\n`;
    const sent = { count: 0 };
    provider.next(scripts.floods(event, sent, 10_000));
    const events = (await world.stream())[Symbol.asyncIterator]();
    await events.next();
    // Longer than the provider may be silent: it is not, and is not blamed for it.
    await sleep(700);
    const stalledAt = sent.count;
    expect(stalledAt, "what fits into sockets and the buffer").to.be.below(1_500);
    for (let read = 1; read < 600; read++) expect((await events.next()).done).to.equal(false);
    expect(sent.count).to.be.at.least(stalledAt);
    await events.return?.();
    await until(() => provider.calls[0]?.brokenAtMs !== undefined);
    expect(sent.count).to.be.below(10_000);
  });
});
