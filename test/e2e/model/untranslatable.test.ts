import { expect } from "chai";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

describe("a hint that `model_gateway.drop_hints` names", () => {
  for (const [settings, status] of [
    ["drop_hints: [top_k, cache_control]", 200],
    ["drop_hints: [top_k]", 400],
  ] as const) {
    it(`${status === 200 ? "is left behind" : "is refused where another is named"}: ${settings}`, async () => {
      const world = await openModelWorld({ settings });
      try {
        const content = [{ type: "text", text: "hello", cache_control: { type: "ephemeral" } }];
        const body = { top_k: 5, messages: [{ role: "user", content }] };
        const told = await askModel(world, { api: "messages", model: "chat-model", body });
        expect(told.status).to.equal(status);
        expect(world.provider.calls.map(({ text }) => /top_k|cache_control/.test(text))).to.deep.equal(
          status === 200 ? [false] : [],
        );
        const own = await askModel(world, { api: "messages", body });
        expect(own.status).to.equal(200);
        expect(world.provider.calls.at(-1)?.text).to.include("top_k").and.include("cache_control");
      } finally {
        await world.stop();
      }
    });
  }
});

describe("a request that the provider's API has no words for", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld();
  });
  after(() => world.stop());

  const ask = async (path: string, body: object): Promise<{ readonly status: number; readonly body: unknown }> => {
    const response = await fetch(world.gateway.url + path, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const messages = [{ role: "user", content: "hello" }];

  it("is refused by the member's name, and neither judged nor sent", async () => {
    const chat = await ask("/v1/chat/completions", { model: "messages-model", messages, response_format: {} });
    expect(chat.status).to.equal(400);
    expect(chat.body).to.have.nested.property("error.code", "model_untranslatable");
    expect(chat.body).to.have.nested.property("error.message").that.includes("response_format");
    const other = await ask("/v1/messages", { model: "chat-model", max_tokens: 9, messages, top_k: 5 });
    expect(other.status).to.equal(400);
    expect(other.body).to.have.nested.property("error.type", "invalid_request_error");
    expect(other.body).to.have.nested.property("error.message").that.includes("top_k");
    expect(world.provider.calls).to.have.length(0);
    expect(await world.records()).to.have.length(0);
  });

  it("passes untouched to a provider that speaks the client's own", async () => {
    const body = { model: "chat-model", messages, response_format: { type: "text" }, some_day: { a: 1 } };
    expect((await ask("/v1/chat/completions", body)).status).to.equal(200);
    expect(world.provider.calls[0]?.body).to.deep.equal({ ...body, model: "open-1" });
    expect((await world.records()).length).to.be.above(0);
  });
});
