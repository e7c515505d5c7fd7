import { expect } from "chai";
import OpenAI from "openai";
import type { JsonObject } from "../../../core/action/json.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { recordedBytes } from "../../support/recorded-stream.ts";
import { type Asked, askModel } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const models = ["chat-model", "messages-model", "responses-model"] as const;
const called = { text: "One moment.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };
const weather = {
  type: "function" as const,
  name: "weather",
  description: "The weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false,
};

describe("the responses API", () => {
  let world: ModelWorld;
  let client: OpenAI;
  before(async () => {
    world = await openModelWorld();
    client = new OpenAI({ baseURL: `${world.gateway.url}/v1`, apiKey: world.keys.agent });
  });
  after(() => world.stop());

  const ask = (asked: Asked): ReturnType<typeof askModel> => askModel(world, { api: "responses", ...asked });

  for (const model of models) {
    for (const stream of [false, true]) {
      it(`runs the loop of an agent with tools: ${model}${stream ? ", streamed" : ""}`, async () => {
        world.provider.next(scripts.answers(called), scripts.answers({ text: "It is sunny." }));
        const body = { model, instructions: "Be brief.", tools: [weather], store: false };
        const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "How is the weather?" }];
        const turn = async (): Promise<OpenAI.Responses.Response> =>
          stream
            ? client.responses.stream({ ...body, input }).finalResponse()
            : client.responses.create({ ...body, input });
        const first = await turn();
        for (const item of first.output) {
          input.push(item as OpenAI.Responses.ResponseInputItem);
          if (item.type !== "function_call") continue;
          expect([item.name, JSON.parse(item.arguments)]).to.deep.equal(["weather", { city: "Zürich" }]);
          input.push({ type: "function_call_output", call_id: item.call_id, output: "sunny" });
        }
        expect(input).to.have.lengthOf(4);
        expect((await turn()).output_text).to.equal("It is sunny.");
        const sent = world.provider.calls.at(-1)?.text ?? "";
        for (const text of ["Be brief.", "How is the weather?", "One moment.", "Zürich", "sunny"]) {
          expect(sent).to.include(text);
        }
      });
    }
  }

  it("judges and records a request under its own name", async () => {
    await ask({});
    const decision = (await world.records()).findLast(({ kind }) => kind === "decision");
    expect(decision?.action).to.include({ protocol: "model", tool: "responses", capability: "generate" });
  });

  it("sends a provider of its own kind what was judged, and hints and state with it", async () => {
    const body = {
      previous_response_id: "resp_before",
      store: true,
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "low", summary: "auto" },
      input: [
        { type: "item_reference", id: "msg_1" },
        { role: "user", content: "go on" },
      ],
      tools: [{ type: "custom", name: "patch" }, weather],
      metadata: { a: "b" },
    };
    expect((await ask({ body })).status).to.equal(200);
    expect(world.provider.calls.at(-1)?.body).to.deep.equal({ model: "resp-1", ...body });
    expect(world.provider.calls.at(-1)?.path).to.equal("/v1/responses");
  });

  for (const [member, body] of Object.entries({
    background: { background: true },
    conversation: { conversation: { id: "conv_1" } },
    prompt: { prompt: { id: "pmpt_1" } },
  })) {
    for (const model of models) {
      it(`refuses \`${member}\` and says what to send instead: ${model}`, async () => {
        const before = world.provider.calls.length;
        const told = await ask({ model, body });
        expect(told.status).to.equal(400);
        expect(errorOf("responses", told)).to.include({ code: "invalid_request", param: member });
        expect(told.text).to.match(/is not served: .*send/);
        expect(world.provider.calls.length).to.equal(before);
      });
    }
  }

  for (const [param, body] of [
    ["previous_response_id", { previous_response_id: "resp_1" }],
    ["store", { store: true }],
    ["input[0]", { input: [{ type: "item_reference", id: "msg_1" }] }],
    ["tools[0].type", { tools: [{ type: "custom", name: "x" }] }],
    ["metadata_", { metadata_: {} }],
  ] as const) {
    for (const model of ["chat-model", "messages-model"]) {
      it(`refuses \`${param}\` before a provider of another kind: ${model}`, async () => {
        const before = world.provider.calls.length;
        const told = await ask({ model, body });
        expect(told.status).to.equal(400);
        expect(errorOf("responses", told)).to.include({ code: "model_untranslatable", param });
        expect(world.provider.calls.length).to.equal(before);
      });
    }
  }

  for (const [title, body] of Object.entries({
    "no input": { input: undefined },
    "an empty input": { input: [] },
    "an empty text": { input: "" },
    "an input of another type": { input: { role: "user" } },
    "tools that are no list": { tools: { type: "mcp" } },
  })) {
    it(`refuses a request with ${title}`, async () => {
      const told = await ask({ body });
      expect([told.status, errorOf("responses", told).code]).to.deep.equal([400, "invalid_request"]);
    });
  }

  it("ends a stream whose provider fails with an error that its clients throw", async () => {
    for (const [model, name] of [
      ["chat-model", "chat-error"],
      ["messages-model", "messages-error"],
      ["responses-model", "responses-error"],
    ] as const) {
      world.provider.next(scripts.streams([Buffer.from(recordedBytes(name))]));
      const told = await ask({ model, stream: true });
      expect(told.text, name).to.match(/event: error\ndata: /);
      if (model === "responses-model") continue; // as its provider sent it
      expect(told.text).to.match(/event: response\.failed\ndata: .*\n\n$/);
      world.provider.next(scripts.streams([Buffer.from(recordedBytes(name))]));
      const error = await client.responses
        .stream({ model, input: "x" })
        .finalResponse()
        .catch((cause: unknown) => cause);
      expect(error).to.be.instanceOf(OpenAI.APIError);
    }
  });

  it("ends a stream that breaks off in a numbered error and the failed response, by its id", async () => {
    const events = Buffer.from(recordedBytes("responses-text")).toString().split("\n\n").slice(0, 6);
    world.provider.next(scripts.streams([`${events.join("\n\n")}\n\n`]));
    const told = await ask({ stream: true });
    expect(errorOf("responses", told)).to.include({ code: "provider_invalid" });
    const data = [...told.text.matchAll(/^data: (.*)$/gm)].map(([, each = ""]) => JSON.parse(each) as JsonObject);
    expect(data.map(({ sequence_number: number }) => number)).to.deep.equal(data.map((_, index) => index));
    const [first, last] = [data[0]?.response as JsonObject, data.at(-1)?.response as JsonObject];
    expect(last).to.include({ id: first.id, status: "failed" });
    expect(last.error).to.include({ code: "server_error" });
  });

  it("tells clients with a code of the API's list not to repeat what policy blocked in a stream", async () => {
    const blocking = await openModelWorld({
      rules: `
  - { id: open.no, title: Not said, decision: block, severity: high, risk: 10, match: { phase: output, protocol: model },
      when: 'leaves(output).exists(l, l.text.contains("forbidden"))', message: not said }
`,
    });
    try {
      blocking.provider.script = scripts.answers({ text: `${"well, ".repeat(200)} forbidden` });
      for (const model of models) {
        const told = await askModel(blocking, { api: "responses", model, stream: true });
        expect(errorOf("responses", told)).to.include({ code: "policy_blocked" });
        expect(told.text).to.include('"error":{"code":"invalid_prompt"').and.not.include("forbid");
      }
    } finally {
      await blocking.stop();
    }
  });

  it("counts what it took, as the provider counted it or by its own count", async () => {
    const totals = async (): Promise<number> => {
      const response = await fetch(`${world.gateway.adminUrl}/admin/v1/usage`, {
        headers: { "x-api-key": world.keys.operator },
      });
      return ((await response.json()) as { totals: { input_tokens: number } }).totals.input_tokens;
    };
    const before = await totals();
    for (const model of models) for (const stream of [false, true]) await ask({ model, stream });
    expect((await totals()) - before).to.equal(66);
    const uncounted = { id: "r", object: "response", model: "m", status: "completed", output: [] };
    world.provider.next(scripts.says(200, uncounted));
    await ask({ body: { instructions: "one two three", input: [{ role: "user", content: "four five six" }] } });
    expect((await totals()) - before).to.be.within(66 + 6, 66 + 30);
  });
});

describe("tools of the responses API", () => {
  /** Requests that have a provider act out of the gateway's sight, by the name that would have to be listed. */
  const acting: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ["web_search", { tools: [weather, { type: "web_search" }] }],
    ["mcp", { tools: [{ type: "mcp", server_url: "https://mcp.example", server_label: "x" }] }],
    ["code_interpreter", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }],
    ["file_search", { tools: [{ type: "file_search", vector_store_ids: [] }] }],
    ["image_generation", { tools: [{ type: "image_generation" }] }],
    ["shell", { tools: [{ type: "shell", environment: { type: "container_auto" } }] }],
    ["tool_search", { tools: [{ type: "tool_search" }] }],
    ["a_type_of_tomorrow", { tools: [{ type: "a_type_of_tomorrow" }] }],
    ["web_search_preview", { tools: [{ type: "namespace", name: "n", tools: [{ type: "web_search_preview" }] }] }],
    ["computer_of_theirs", { input: [{ type: "additional_tools", tools: [{ type: "computer_of_theirs" }] }] }],
    ["mcp", { input: [{ type: "mcp_approval_response", approval_request_id: "a", approve: true }] }],
  ];
  const own = [
    weather,
    { type: "custom", name: "x" },
    { type: "local_shell" },
    { type: "apply_patch" },
    { type: "shell", environment: { type: "local" } },
    { type: "namespace", name: "n", description: "d", tools: [weather] },
  ];

  for (const passes of ["off", "client", "all"]) {
    it(`that the provider runs are refused, and those of the client pass, with \`${passes}\``, async () => {
      const world = await openModelWorld({ settings: `tool_passthrough: ${passes}` });
      try {
        for (const [name, body] of acting) {
          const told = await askModel(world, { api: "responses", body });
          expect([told.status, world.provider.calls.length], name).to.deep.equal([400, 0]);
          expect(told.text).to.include(`\`${name}\`, which the provider runs`);
        }
        expect((await askModel(world, { api: "responses", body: { tools: own } })).status).to.equal(200);
      } finally {
        await world.stop();
      }
    });
  }

  it("that the provider runs pass where `all` lists them", async () => {
    const listed = acting.map(([name]) => name).join(", ");
    const world = await openModelWorld({ settings: `tool_passthrough: all\n  provider_tools: [${listed}]` });
    try {
      for (const [name, body] of acting) {
        expect((await askModel(world, { api: "responses", body })).status, name).to.equal(200);
      }
    } finally {
      await world.stop();
    }
  });

  for (const stream of [false, true]) {
    it(`that the provider ran unasked are not handed on${stream ? ", streamed" : ""}`, async () => {
      const world = await openModelWorld();
      try {
        const ranByProvider = (text: string): string => text.replaceAll('"function_call"', '"mcp_call"');
        const whole = Buffer.from(recordedBytes("responses-tools")).toString();
        const body = JSON.parse(/data: (.*"type":"response.completed".*)/.exec(whole)?.[1] ?? "") as JsonObject;
        world.provider.script = stream
          ? scripts.streams([ranByProvider(whole)])
          : scripts.says(200, ranByProvider(JSON.stringify(body.response)));
        const told = await askModel(world, { api: "responses", stream });
        expect(told.text)
          .to.include("tools_disabled")
          .and.not.match(/get_weather","|Paris/);
      } finally {
        await world.stop();
      }
    });
  }
});
