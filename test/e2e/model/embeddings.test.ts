import { expect } from "chai";
import OpenAI from "openai";
import { scripts } from "../../fixture/model-provider.ts";
import type { Told } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `
  - { id: open.not-embedded, title: Not embedded, decision: block, severity: high, risk: 10, match: { phase: input, protocol: model },
      when: 'leaves(args).exists(leaf, leaf.text.contains("forbidden"))', message: not embedded }
  - { id: open.ask-first, title: Asked first, decision: review, severity: low, risk: 10, match: { phase: input, tool: embeddings },
      when: 'leaves(args).exists(leaf, leaf.text.contains("please review"))', message: asked for review }
`;
const embedded = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.5, -0.25] }],
  model: "embed-1",
  usage: { prompt_tokens: 9, total_tokens: 9 },
};

describe("POST /v1/embeddings", () => {
  let world: ModelWorld;
  let client: OpenAI;
  before(async () => {
    world = await openModelWorld({ rules });
    client = new OpenAI({ baseURL: `${world.gateway.url}/v1`, apiKey: world.keys.agent });
    world.provider.script = scripts.says(200, embedded);
  });
  after(() => world.stop());

  async function ask(body: Readonly<Record<string, unknown>>): Promise<Told> {
    const response = await fetch(`${world.gateway.url}/v1/embeddings`, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-model", ...body }),
    });
    const text = await response.text();
    const { status, headers } = response;
    return { status, headers, text, json: () => JSON.parse(text) as ReturnType<Told["json"]> };
  }

  async function inputTokens(): Promise<number> {
    const headers = { "x-api-key": world.keys.operator };
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/usage`, { headers });
    return ((await response.json()) as { totals: { input_tokens: number } }).totals.input_tokens;
  }

  for (const input of ["a text", ["a text", "another"], [1, 2, 3], [[1, 2], [3]]]) {
    it(`passes ${JSON.stringify(input)} on as it was judged, and its answer byte for byte`, async () => {
      const told = await ask({ input, encoding_format: "float", dimensions: 2 });
      expect([told.status, told.text]).to.deep.equal([200, JSON.stringify(embedded)]);
      const call = world.provider.calls.at(-1);
      expect(call?.path).to.equal("/v1/embeddings");
      expect(call?.body).to.deep.equal({ model: "open-1", input, encoding_format: "float", dimensions: 2 });
      const decision = (await world.records()).findLast(({ kind }) => kind === "decision");
      expect(decision?.action).to.include({ protocol: "model", tool: "embeddings", capability: "generate" });
      expect(decision?.action.target).to.equal("open/open-1");
    });
  }

  it("counts what the provider counted, else the texts, or their tokens", async () => {
    const before = await inputTokens();
    await ask({ input: "a text" });
    expect((await inputTokens()) - before).to.equal(9);
    world.provider.next(scripts.says(200, { ...embedded, usage: undefined }));
    await ask({ input: Array.from({ length: 100 }, (_, index) => index) });
    expect((await inputTokens()) - before - 9).to.be.within(100, 110);
  });

  it("serves the official client, by a provider and by the built-in one", async () => {
    const base64 = Buffer.from(new Float32Array([0.5, -0.25]).buffer).toString("base64");
    world.provider.next(scripts.says(200, { ...embedded, data: [{ ...embedded.data[0], embedding: base64 }] }));
    const { data } = await client.embeddings.create({ model: "chat-model", input: "a text" });
    expect(data[0]?.embedding).to.deep.equal([0.5, -0.25]);
    const own = async (input: string): Promise<readonly number[]> =>
      (await client.embeddings.create({ model: "mock", input: [input, "x"] })).data[0]?.embedding ?? [];
    expect(await own("a text")).to.deep.equal(await own("a text"));
    expect(await own("a text"))
      .to.have.lengthOf(8)
      .and.not.deep.equal(await own("other"));
  });

  it("does not send what policy blocks or holds", async () => {
    const before = world.provider.calls.length;
    for (const [input, code] of [
      ["a forbidden text", "policy_blocked"],
      ["please review", "approval_required"],
    ]) {
      const told = await ask({ input: ["x", input] });
      expect([told.status, errorOf("chat", told).code]).to.deep.equal([403, code]);
    }
    expect(world.provider.calls.length).to.equal(before);
  });

  for (const model of ["messages-model", "responses-model"]) {
    it(`says that a provider has none: ${model}`, async () => {
      const before = world.provider.calls.length;
      const told = await ask({ model, input: "x" });
      expect(told.status).to.equal(400);
      expect(errorOf("chat", told)).to.include({ code: "model_untranslatable", param: "model" });
      expect(told.text).to.include("has no embeddings: ask for a model that a provider of type `openai` serves");
      expect(world.provider.calls.length).to.equal(before);
    });
  }

  for (const body of [
    {},
    { input: "" },
    { input: [] },
    { input: [""] },
    { input: ["x", 1] },
    { input: [[]] },
    { input: [1.5] },
    { input: { text: "x" } },
    { input: "x", stream: true },
    { input: "x", model: "" },
  ]) {
    it(`refuses ${JSON.stringify(body)}`, async () => {
      const told = await ask(body);
      expect([told.status, errorOf("chat", told).code]).to.deep.equal([400, "invalid_request"]);
    });
  }
});

describe("GET /v1/models/{id}", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld();
  });
  after(() => world.stop());

  const get = async (
    id: string,
    headers: Readonly<Record<string, string>> = {},
    key: Readonly<Record<string, string>> = { "x-api-key": world.keys.agent },
  ): Promise<Told> => {
    const response = await fetch(`${world.gateway.url}/v1/models/${id}`, {
      headers: { ...key, ...headers },
    });
    const text = await response.text();
    const { status } = response;
    return { status, headers: response.headers, text, json: () => JSON.parse(text) as ReturnType<Told["json"]> };
  };
  const version = { "anthropic-version": "2023-06-01" };

  it("shows a model as the list does, in the asker's form", async () => {
    const client = new OpenAI({ baseURL: `${world.gateway.url}/v1`, apiKey: world.keys.agent });
    const listed = (await client.models.list()).data.find(({ id }) => id === "chat-model");
    expect(await client.models.retrieve("chat-model")).to.deep.equal(listed);
    expect((await get("chat-model")).json()).to.include({ id: "chat-model", object: "model" });
    expect((await get("chat-model", version)).json()).to.include({ id: "chat-model", type: "model" });
    const google = await get("chat-model", { "x-goog-api-key": world.keys.agent }, {});
    expect(google.json()).to.include({ name: "models/chat-model" });
  });

  it("is 404 in the asker's form for a model that no route serves", async () => {
    for (const [api, headers] of [
      ["chat", {}],
      ["messages", version],
    ] as const) {
      const told = await get("chat-modle", headers);
      expect(told.status).to.equal(404);
      expect(errorOf(api, told).code).to.equal("model_not_found");
      expect(told.text).to.include("chat-model");
    }
  });
});
