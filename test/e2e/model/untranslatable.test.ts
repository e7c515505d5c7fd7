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

/** A later turn of a coding agent of the messages API: hints wherever they may stand, a tool that failed, and a thought. */
const codingAgent = {
  max_tokens: 32_000,
  temperature: 1,
  system: [{ type: "text", text: "You are a coding agent.", cache_control: { type: "ephemeral", ttl: "1h" } }],
  tools: [
    {
      name: "Read",
      description: "Reads a file.",
      input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
      eager_input_streaming: true,
      cache_control: { type: "ephemeral" },
    },
  ],
  messages: [
    { role: "user", content: [{ type: "text", text: "What does a.txt say?" }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "I shall read it.", signature: "" },
        { type: "tool_use", id: "t1", name: "Read", input: { path: "a.txt" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "t1",
          content: "no such file",
          is_error: true,
          cache_control: { type: "ephemeral" },
        },
      ],
    },
  ],
  metadata: { user_id: "user_0", account: "a" },
  thinking: { type: "enabled", budget_tokens: 31_999 },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "medium" },
  service_tier: "standard_only",
};
const hint = /cache_control|eager_input|is_error|budget_tokens|context_management|output_config|service_tier|account/;

describe("a coding agent of the messages API before a provider of the chat API", () => {
  it("is served with the default settings: hints are dropped, and named in the log once", async () => {
    const world = await openModelWorld();
    try {
      for (const stream of [false, true, false]) {
        const told = await askModel(world, { api: "messages", model: "chat-model", stream, body: codingAgent });
        expect(told.status, told.text).to.equal(200);
        expect(told.text).to.include("Hello.");
      }
      for (const { text, body } of world.provider.calls) {
        expect(text).to.not.match(hint);
        expect(text).to.include("no such file").and.include("I shall read it.").and.include("You are a coding agent.");
        expect(body.user).to.equal("user_0");
      }
      const lines = world.gateway.stderr().split("\n");
      const dropped = lines.filter((line) => line.includes("request_hints_dropped"));
      expect(dropped).to.have.length(1);
      expect(JSON.parse(dropped[0] ?? "")).to.deep.include({ level: "info", provider: "open" });
      expect(JSON.parse(dropped[0] ?? "").members).to.have.members([
        "cache_control",
        "context_management",
        "eager_input_streaming",
        "is_error",
        "metadata",
        "output_config.effort",
        "service_tier",
        "thinking",
      ]);
      const [decision] = await world.records();
      expect(decision).to.have.property("kind", "decision");
    } finally {
      await world.stop();
    }
  });

  it("is refused by the name of a hint where `drop_hints` is empty, and reaches a provider of its own API as it is", async () => {
    const world = await openModelWorld({ settings: "tool_passthrough: client\n  drop_hints: []" });
    try {
      const told = await askModel(world, { api: "messages", model: "chat-model", body: codingAgent });
      expect(told.status).to.equal(400);
      expect(told.json().error).to.include({ code: "model_untranslatable" });
      expect(told.text).to.match(hint);
      const own = await askModel(world, { api: "messages", body: codingAgent });
      expect(own.status).to.equal(200);
      expect(world.provider.calls.at(-1)?.body).to.deep.equal({ ...codingAgent, model: "claude-1" });
    } finally {
      await world.stop();
    }
  });

  it("is refused by name with what changes the answer", async () => {
    const world = await openModelWorld();
    try {
      const format = { type: "json_schema", schema: { type: "object" } };
      for (const [name, body] of [
        ["top_k", { top_k: 5 }],
        ["output_config", { output_config: { effort: "low", format } }],
        ["inference_geo", { inference_geo: "eu" }],
        ["fallbacks", { fallbacks: [{ model: "other" }] }],
      ] as const) {
        const told = await askModel(world, { api: "messages", model: "chat-model", body: { ...codingAgent, ...body } });
        expect(told.status, name).to.equal(400);
        expect(told.json().error?.message, name).to.include(`\`${name}\``);
      }
      expect(world.provider.calls).to.have.length(0);
    } finally {
      await world.stop();
    }
  });
});

describe("a chat client before a provider of the messages API", () => {
  it("is served with the default settings, without its hints", async () => {
    const world = await openModelWorld();
    try {
      const hints = { store: true, metadata: { run: "7" }, prompt_cache_key: "k", prompt_cache_retention: "24h" };
      const more = { reasoning_effort: "low", verbosity: "low", safety_identifier: "s", service_tier: "flex" };
      const told = await askModel(world, { model: "messages-model", body: { ...hints, ...more } });
      expect(told.status, told.text).to.equal(200);
      expect(Object.keys(world.provider.calls[0]?.body ?? {})).to.have.members(["model", "max_tokens", "messages"]);
    } finally {
      await world.stop();
    }
  });
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
