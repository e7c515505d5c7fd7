import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { answerOf } from "../../fixture/model-reply.ts";
import { type Asked, askModel, openModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

interface Totals {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** An event of a chat stream that counts nothing. */
function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices })}\n\n`;
}

describe("usage of models", () => {
  /** Without limits. */
  let usual: ModelWorld;
  let world: ModelWorld | undefined;

  before(async () => {
    usual = await openModelWorld();
  });

  beforeEach(() => {
    usual.provider.script = scripts.answers({ text: "It is sunny." });
  });

  afterEach(async () => {
    await world?.stop();
    world = undefined;
  });

  after(() => usual?.stop());

  async function open(usage: string): Promise<ModelWorld> {
    world = await openModelWorld({ usage });
    world.provider.script = scripts.answers({ text: "It is sunny." });
    return world;
  }
  async function totals({ gateway, keys }: ModelWorld): Promise<Totals> {
    const headers = { "x-api-key": keys.operator };
    const response = await fetch(`${gateway.adminUrl}/admin/v1/usage`, { headers });
    return ((await response.json()) as { totals: Totals }).totals;
  }

  /** How much more there is than `before`. */
  async function since(before: Totals): Promise<Totals> {
    const now = await totals(usual);
    return {
      requests: now.requests - before.requests,
      input_tokens: now.input_tokens - before.input_tokens,
      output_tokens: now.output_tokens - before.output_tokens,
    };
  }

  it("is what the provider counted, streamed and not, in either API", async () => {
    const before = await totals(usual);
    const all: Asked[] = (["chat", "messages"] as const).flatMap((api) =>
      ["chat-model", "messages-model"].flatMap((model) => [
        { api, model },
        { api, model, stream: true, body: api === "chat" ? { stream_options: { include_usage: true } } : {} },
      ]),
    );
    for (const asked of all) expect((await askModel(usual, asked)).status).to.equal(200);
    expect(await since(before)).to.deep.include({
      requests: all.length,
      input_tokens: 11 * all.length,
      output_tokens: 7 * all.length,
    });
  });

  it("is counted here where the provider counts nothing", async () => {
    const before = await totals(usual);
    usual.provider.script = scripts.streams([
      chunk({ content: "It is sunny." }),
      chunk({}, "stop"),
      "data: [DONE]\n\n",
    ]);
    await askModel(usual, { stream: true, text: "How is the weather in Zürich today?" });
    const counted = await since(before);
    expect(counted.requests).to.equal(1);
    expect(counted.input_tokens).to.be.within(10, 20);
    expect(counted.output_tokens).to.be.within(3, 6);
  });

  it("is what came of a stream that its client gave up", async () => {
    const before = await totals(usual);
    usual.provider.script = scripts.streams(new Array<string>(400).fill(chunk({ content: "word " })), 5);
    const abort = new AbortController();
    const response = await openModel(usual, { stream: true, signal: abort.signal });
    await response.body?.getReader().read();
    abort.abort();
    const until = performance.now() + 60_000;
    while ((await since(before)).requests === 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { output_tokens: tokens } = await since(before);
    expect(tokens).to.be.within(1, 399);
  });

  it("is nothing where policy, a provider or the gateway refused", async () => {
    const before = await totals(usual);
    usual.provider.script = scripts.says(400);
    await askModel(usual);
    await askModel(usual, { model: "no-such-model" });
    expect(await since(before)).to.deep.include({ requests: 0, input_tokens: 0, output_tokens: 0 });
  });

  it("is limited by requests a minute: 429 with the standard headers, and the provider is not asked [R1.1-26]", async () => {
    const opened = await open("usage: { requests_per_minute: 3 }");
    const statuses: number[] = [];
    for (let index = 0; index < 5; index++) statuses.push((await askModel(opened)).status);
    expect(statuses).to.deep.equal([200, 200, 200, 429, 429]);
    expect(opened.provider.calls.length).to.equal(3);
    const refused = await askModel(opened, { api: "messages" });
    expect(refused.json().error).to.include({ type: "rate_limit_error", code: "rate_limit_exceeded" });
    expect(Number(refused.headers.get("retry-after"))).to.be.within(1, 60);
    expect(refused.headers.get("ratelimit-limit")).to.equal("3");
    expect(refused.headers.get("ratelimit-remaining")).to.equal("0");
    expect((await askModel(opened, { headers: { "x-api-key": opened.keys.other } })).status).to.equal(200);
  });

  it("is limited by tokens a minute", async () => {
    const opened = await open("usage: { tokens_per_minute: 100 }");
    expect((await askModel(opened, { text: "word ".repeat(60) })).status).to.equal(200);
    expect((await askModel(opened, { text: "word ".repeat(100) })).status).to.equal(429);
    expect(opened.provider.calls.length).to.equal(1);
  });

  it("is enough for a coding agent by default: 60 requests of 30,000 tokens at once", async () => {
    const opened = await open("");
    const usage = { input_tokens: 30_000, output_tokens: 500 };
    opened.provider.script = scripts.says(200, { ...answerOf("messages", { text: "It is sunny." }), usage });
    const statuses = new Set<number>();
    for (let index = 0; index < 60; index++) statuses.add((await askModel(opened, { api: "messages" })).status);
    expect([...statuses]).to.deep.equal([200]);
    expect((await totals(opened)).input_tokens).to.equal(1_800_000);
  });

  for (const [whose, refused, other] of [
    ["tenant: acme", 429, 200],
    ["tenant: umbrella", 200, 429],
    ["tenant: acme, key: agent", 429, 200],
    ["tenant: acme, key: operator", 200, 200],
  ] as const) {
    it(`is held to a budget of { ${whose} }, and clients do not repeat what it refuses`, async () => {
      const opened = await open(`usage: { budgets: [{ ${whose}, tokens_per_day: 20 }] }`);
      const asThem: Asked = { headers: { "x-api-key": opened.keys.other } };
      for (const asked of [{}, asThem]) await askModel(opened, asked);
      const before = opened.provider.calls.length;
      const [mine, theirs] = [await askModel(opened), await askModel(opened, asThem)];
      expect([mine.status, theirs.status]).to.deep.equal([refused, other]);
      expect(opened.provider.calls.length - before).to.equal(
        [refused, other].filter((status) => status === 200).length,
      );
      const told = [mine, theirs].find(({ status }) => status === 429);
      if (told === undefined) return;
      expect(told.json().error).to.include({ code: "insufficient_quota" });
      expect(told.headers.get("x-should-retry")).to.equal("false");
    });
  }

  it("is told beforehand by count_tokens, which asks nobody where the provider does not count [R4.1-11]", async () => {
    const [calls, records] = [usual.provider.calls.length, (await usual.records()).length];
    const count = async (text: string, model = "chat-model"): Promise<Response> =>
      fetch(`${usual.gateway.url}/v1/messages/count_tokens`, {
        method: "POST",
        headers: { "x-api-key": usual.keys.agent, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: text }] }),
      });
    const tokensOf = async (text: string): Promise<number> => {
      const told = (await (await count(text)).json()) as { readonly input_tokens: number };
      expect(told).to.have.keys("input_tokens");
      return told.input_tokens;
    };
    const short = await tokensOf("hello");
    expect(short).to.be.within(1, 12);
    expect((await tokensOf("hello ".repeat(100))) - short).to.be.within(90, 110);
    const unknown = await count("hello", "no-such-model");
    expect(unknown.status).to.equal(404);
    expect(await unknown.json()).to.include({ type: "error" });
    expect(usual.provider.calls.length).to.equal(calls);
    expect(await usual.records()).to.have.length(records);
  });
});
