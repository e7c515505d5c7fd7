import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../../core/action/error.ts";
import type { JsonObject } from "../../../../../core/action/json.ts";
import type { ModelApi } from "../../../../../core/action/model-api.ts";
import { translateRequest } from "../../../../../core/provider/wire/translate.ts";
import {
  chatRequest,
  conversation,
  messagesRequest,
  responsesRequest,
} from "../../../../support/model-conversation.ts";

const hello: JsonObject = { model: "m", input: "hello" };
const chatHello = { model: "m", messages: [{ role: "user", content: "hello" }] };

function toChat(added: JsonObject): JsonObject {
  return translateRequest("responses", "chat", { ...hello, ...added });
}

function fault(to: ModelApi, added: JsonObject, hints: readonly string[] = []): string {
  try {
    translateRequest("responses", to, { ...hello, ...added }, new Set(hints));
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
  return "translated";
}

/** Conversations that each of the APIs can express: the responses API has no stop sequences. */
const shared = conversation.map((c) => ({ ...c, stops: [] }));

describe("translateRequest(from, to, body) and the responses API", () => {
  it("writes any conversation of the chat API in the responses API", () => {
    fc.assert(
      fc.property(shared, (c) => {
        expect(translateRequest("chat", "responses", chatRequest(c))).to.deep.equal(responsesRequest(c));
      }),
    );
  });

  it("writes any conversation of the messages API in the responses API", () => {
    fc.assert(
      fc.property(shared, (c) => {
        expect(translateRequest("messages", "responses", messagesRequest(c))).to.deep.equal(responsesRequest(c));
      }),
    );
  });

  it("says to a chat and a messages provider what the client said", () => {
    fc.assert(
      fc.property(shared, (c) => {
        const strict = c.tools.map((tool) => ({ ...tool, strict: tool.strict ?? false }));
        const said = { ...c, tools: strict, turns: c.turns.filter((turn, at) => !isRepeated(turn, c.turns[at - 1])) };
        expect(translateRequest("responses", "chat", responsesRequest(said))).to.deep.equal(chatRequest(said));
        expect(translateRequest("responses", "messages", responsesRequest(said))).to.deep.equal(messagesRequest(said));
      }),
    );
  });

  it("writes instructions, a text and the settings as the chat API does", () => {
    const translated = toChat({
      instructions: "Be brief.",
      max_output_tokens: 50,
      temperature: 1.5,
      reasoning: { effort: "low", summary: "auto" },
      text: { verbosity: "low", format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: true } },
      store: false,
      include: ["reasoning.encrypted_content"],
      truncation: "disabled",
      metadata: {},
      prompt_cache_key: "k",
      stream: true,
    });
    expect(translated).to.deep.equal({
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hello" },
      ],
      max_completion_tokens: 50,
      temperature: 1.5,
      reasoning_effort: "low",
      verbosity: "low",
      response_format: {
        type: "json_schema",
        json_schema: { name: "n", schema: { type: "object" }, strict: true },
      },
      prompt_cache_key: "k",
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("writes the thoughts, texts and calls of one turn as one message", () => {
    const thought = { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] };
    const said = { type: "message", id: "m", role: "assistant", status: "completed", content: "One moment." };
    const call = { type: "function_call", id: "f", call_id: "c", name: "look", arguments: "{}", status: "completed" };
    const output = { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "sun" }] };
    const { messages } = toChat({ input: [{ role: "user", content: "look" }, thought, said, call, output] });
    expect(messages).to.deep.equal([
      { role: "user", content: "look" },
      {
        role: "assistant",
        content: "One moment.",
        reasoning_content: "Hm.",
        tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c", content: "sun" },
    ]);
  });

  const refused: Readonly<Record<string, JsonObject>> = {
    previous_response_id: { previous_response_id: "resp_1" },
    conversation: { conversation: "conv_1" },
    prompt: { prompt: { id: "p" } },
    context_management: { context_management: [{ type: "compaction" }] },
    store: { store: true },
    background: { background: true },
    truncation: { truncation: "auto" },
    top_logprobs: { top_logprobs: 3 },
    include: { include: ["message.output_text.logprobs"] },
    "tools[0].type": { tools: [{ type: "web_search" }] },
    "tool_choice.type": { tool_choice: { type: "mcp", server_label: "x" } },
    "text.format.type": { text: { format: { type: "grammar" } } },
    "stream_options.include_obfuscation": { stream_options: { include_obfuscation: true } },
    "input[0]": { input: [{ type: "item_reference", id: "msg_1" }] },
    "input[0].type": { input: [{ type: "computer_call_output", call_id: "c", output: {} }] },
    "input[0].encrypted_content": { input: [{ type: "reasoning", id: "r", summary: [], encrypted_content: "gAAA" }] },
    "input[0].content[0]": { input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] },
    "input[0].content[0].type": { input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] },
    "input[0].x": { input: [{ role: "user", content: "x", x: 1 }] },
    x: { x: 1 },
  };
  for (const [path, added] of Object.entries(refused)) {
    for (const to of ["chat", "messages"] as const) {
      it(`refuses \`${path}\` before a provider of the ${to} API, and names it`, () => {
        expect(fault(to, added)).to.match(/^MODEL_UNTRANSLATABLE /);
        expect(fault(to, added)).to.include(`\`${path}\``);
      });
    }
  }

  it("says what to send instead of what a provider would have to keep", () => {
    expect(fault("chat", { store: true })).to.include("send `store: false`");
    expect(fault("chat", { previous_response_id: "r" })).to.include("send the whole conversation in `input`");
    expect(fault("chat", { input: [{ id: "msg_1" }] })).to.include("send the item itself");
    expect(fault("chat", { tools: [{ type: "custom", name: "x" }] })).to.include("type `function`");
  });

  it("names what the messages API cannot express as the client wrote it", () => {
    const format = { text: { format: { type: "json_object" } } };
    expect(fault("messages", format)).to.include("`text.format`");
    expect(fault("messages", { reasoning: { effort: "high" } })).to.include("`reasoning.effort`");
    expect(fault("messages", { reasoning: { effort: "high" } }, ["reasoning_effort"])).to.equal("translated");
    expect(fault("messages", { temperature: 1.5 })).to.include("`temperature`");
    const late = [
      { role: "user", content: "x" },
      { role: "system", content: "y" },
    ];
    expect(fault("messages", { input: late })).to.include("`input`");
  });

  it("drops hints only where the provider's API has no equivalent, and never a request to keep the answer", () => {
    const hints = ["metadata", "reasoning_effort", "service_tier", "store"];
    const settings = { metadata: { a: "b" }, service_tier: "flex", reasoning: { effort: "low" } };
    const dropped: string[] = [];
    const translated = (from: ModelApi, to: ModelApi, body: JsonObject): JsonObject =>
      translateRequest(from, to, body, new Set(hints), (hint) => dropped.push(hint));
    const chat = translated("responses", "chat", { ...hello, ...settings });
    expect(chat).to.deep.include({ metadata: { a: "b" }, service_tier: "flex", reasoning_effort: "low" });
    expect(translated("chat", "responses", chat)).to.deep.include(settings);
    expect(dropped).to.deep.equal([]);
    const messages = translated("responses", "messages", { ...hello, ...settings });
    expect(messages).to.have.all.keys("model", "max_tokens", "messages");
    expect(dropped).to.have.members(["metadata", "reasoning_effort", "service_tier"]);
    expect(fault("chat", { store: true }, hints)).to.include("`store`");
    expect(fault("messages", { store: true }, hints)).to.include("`store`");
  });

  it("asks a provider of the responses API to keep nothing, and for tools as strict as they were asked for", () => {
    const tools = [{ type: "function", function: { name: "f" } }];
    const translated = translateRequest("chat", "responses", { ...chatHello, tools });
    expect(translated).to.include({ store: false });
    expect(translated.tools).to.deep.equal([
      { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false },
    ]);
  });

  for (const added of [{ stop: ["x"] }, { n: 2 }, { logprobs: true }, { seed: 1 }, { x: 1 }] as const) {
    it(`refuses ${JSON.stringify(added)} of a chat client before a provider of the responses API`, () => {
      expect(() => translateRequest("chat", "responses", { ...chatHello, ...added }))
        .to.throw(GatewayError)
        .with.property("code", "MODEL_UNTRANSLATABLE");
    });
  }

  it("returns the same object where no translation is needed, whatever is in it", () => {
    const body = { anything: [{ at: "all" }] };
    expect(translateRequest("responses", "responses", body)).to.equal(body);
  });
});

/** Two turns of the model in a row are one in the responses API, which has no turns. */
function isRepeated(turn: { readonly kind: string }, before: { readonly kind: string } | undefined): boolean {
  return turn.kind === "assistant" && before?.kind === "assistant";
}
