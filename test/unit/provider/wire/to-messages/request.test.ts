import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../../core/action/error.ts";
import type { JsonObject } from "../../../../../core/action/json.ts";
import type { ModelApi } from "../../../../../core/action/model-api.ts";
import { defaultMaxTokens } from "../../../../../core/provider/wire/to-messages/request.ts";
import { translateRequest } from "../../../../../core/provider/wire/translate.ts";
import { chatRequest, conversation, messagesRequest } from "../../../../support/model-conversation.ts";

const chat: JsonObject = { model: "m", messages: [{ role: "user", content: "hello" }] };
const messages: JsonObject = { model: "m", max_tokens: 10, messages: [{ role: "user", content: "hello" }] };

function translated(from: ModelApi, added: JsonObject): JsonObject {
  return translateRequest(from, from === "chat" ? "messages" : "chat", {
    ...(from === "chat" ? chat : messages),
    ...added,
  });
}

function fault(from: ModelApi, added: JsonObject): string {
  try {
    translated(from, added);
  } catch (error) {
    if (error instanceof GatewayError) return error.message;
    throw error;
  }
  return "translated";
}

describe("translateRequest(from, to, body)", () => {
  it("writes any conversation of the chat API in the messages API", () => {
    fc.assert(
      fc.property(conversation, (c) => {
        expect(translateRequest("chat", "messages", chatRequest(c))).to.deep.equal(messagesRequest(c));
      }),
    );
  });

  it("writes any conversation of the messages API in the chat API", () => {
    fc.assert(
      fc.property(conversation, (c) => {
        expect(translateRequest("messages", "chat", messagesRequest(c))).to.deep.equal(chatRequest(c));
      }),
    );
  });

  it("returns the same object where no translation is needed, whatever is in it", () => {
    const body = { anything: [{ at: "all" }] };
    expect(translateRequest("chat", "chat", body)).to.equal(body);
    expect(translateRequest("messages", "messages", body)).to.equal(body);
  });

  describe("from chat", () => {
    it("writes results of tools and what the user says next as one turn", () => {
      const turns = [
        { role: "tool", tool_call_id: "a", content: "1" },
        { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "2" }] },
        { role: "user", content: "go on" },
        { role: "user", content: "now" },
      ];
      expect(translated("chat", { messages: turns }).messages).to.deep.equal([
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a", content: "1" },
            { type: "tool_result", tool_use_id: "b", content: "2" },
            { type: "text", text: "go on" },
          ],
        },
        { role: "user", content: "now" },
      ]);
    });

    it("reads either name of the limit, and sets one where there is none", () => {
      expect(translated("chat", {}).max_tokens).to.equal(defaultMaxTokens);
      expect(translated("chat", { max_tokens: 7 }).max_tokens).to.equal(7);
      expect(translated("chat", { max_completion_tokens: 8, max_tokens: 8 }).max_tokens).to.equal(8);
      expect(fault("chat", { max_completion_tokens: 8, max_tokens: 7 })).to.contain("`max_tokens`");
    });

    it("takes what a client echoes of an answer, and what says nothing", () => {
      const echoed = { role: "assistant", content: "yes", refusal: null, annotations: [], audio: null };
      const silent = {
        n: 1,
        logprobs: false,
        response_format: { type: "text" },
        logit_bias: null,
        metadata: {},
        store: false,
      };
      expect(translated("chat", { ...silent, messages: [echoed] }).messages).to.deep.equal([
        { role: "assistant", content: "yes" },
      ]);
    });

    it("writes developer instructions, one stop text and serial calls", () => {
      const tools = [{ type: "function", function: { name: "f" } }];
      const developer = { messages: [{ role: "developer", content: "be brief" }], stop: "END" };
      const body = translated("chat", { ...developer, tools, parallel_tool_calls: false });
      expect(body).to.include({ system: "be brief" });
      expect(body.stop_sequences).to.deep.equal(["END"]);
      expect(body.tools).to.deep.equal([{ name: "f", input_schema: { type: "object", properties: {} } }]);
      expect(body.tool_choice).to.deep.equal({ type: "auto", disable_parallel_tool_use: true });
    });

    for (const [name, added, path] of [
      ["more than one choice", { n: 2 }, "n"],
      ["log probabilities", { logprobs: true }, "logprobs"],
      ["a format of the answer", { response_format: { type: "json_object" } }, "response_format"],
      ["audio out", { modalities: ["text", "audio"] }, "modalities"],
      ["a seed", { seed: 1 }, "seed"],
      ["a penalty", { frequency_penalty: 0.5 }, "frequency_penalty"],
      ["heat", { temperature: 1.5 }, "temperature"],
      ["former functions", { functions: [{ name: "f" }] }, "functions"],
      ["an effort", { reasoning_effort: "low" }, "reasoning_effort"],
      ["metadata", { metadata: { a: "b" } }, "metadata"],
      ["obfuscation", { stream_options: { include_obfuscation: true } }, "stream_options.include_obfuscation"],
      ["a custom tool", { tools: [{ type: "custom", custom: { name: "c" } }] }, "tools[0].type"],
      ["allowed tools", { tool_choice: { type: "allowed_tools", allowed_tools: {} } }, "tool_choice.type"],
      ["an unknown choice", { tool_choice: "some" }, "tool_choice"],
      ["serial calls of no tools", { parallel_tool_calls: false }, "parallel_tool_calls"],
      ["a name", { messages: [{ role: "user", content: "x", name: "eve" }] }, "messages[0].name"],
      [
        "audio in",
        { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
        "messages[0].content[0].type",
      ],
      [
        "a file",
        { messages: [{ role: "user", content: [{ type: "file", file: {} }] }] },
        "messages[0].content[0].type",
      ],
      [
        "detail of a picture",
        {
          messages: [
            { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/", detail: "high" } }] },
          ],
        },
        "messages[0].content[0].image_url.detail",
      ],
      [
        "a picture from a disk",
        { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }] },
        "messages[0].content[0].image_url.url",
      ],
      [
        "late instructions",
        {
          messages: [
            { role: "user", content: "x" },
            { role: "system", content: "y" },
          ],
        },
        "messages[1].role",
      ],
      ["a former function's result", { messages: [{ role: "function", name: "f", content: "1" }] }, "messages[0].role"],
      ["a refusal in the history", { messages: [{ role: "assistant", refusal: "no" }] }, "messages[0].refusal"],
      ["a member nobody knows", { some_day: { deep: true } }, "some_day"],
      ["a member named like a prototype", JSON.parse('{"__proto__": {"n": 2}}') as JsonObject, "__proto__"],
    ] as const) {
      it(`refuses ${name} by its name`, () => {
        expect(fault("chat", added))
          .to.match(/^no equivalent in the other model API: /)
          .and.contain(`\`${path}\``);
      });
    }

    it("refuses arguments that would change: no JSON, numbers no double holds", () => {
      const calling = (text: string): JsonObject => ({
        messages: [
          { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: text } }] },
        ],
      });
      const path = "`messages[0].tool_calls[0].function.arguments`";
      expect(fault("chat", calling('{"id":'))).to.contain(`no equivalent in the other model API: ${path}`);
      expect(fault("chat", calling('{"id":12345678901234567890}'))).to.contain(
        `no equivalent in the other model API: ${path}`,
      );
      expect(fault("chat", calling("[1]"))).to.contain(`${path}: expected the text of a JSON object`);
    });
  });

  describe("from messages", () => {
    it("asks for usage in a stream, which a messages client is always told", () => {
      expect(translated("messages", { stream: true }).stream_options).to.deep.equal({ include_usage: true });
      expect(translated("messages", { stream: false })).not.to.have.property("stream_options");
    });

    it("takes what a client echoes of an answer, and what says nothing", () => {
      const content = [
        { type: "thinking", thinking: "hm", signature: "" },
        { type: "text", text: "yes", citations: null },
        { type: "tool_use", id: "a", name: "f", input: {}, caller: { type: "direct" } },
      ];
      const silent = { thinking: { type: "disabled" }, service_tier: "auto", output_config: {}, container: null };
      expect(translated("messages", { ...silent, messages: [{ role: "assistant", content }] }).messages).to.deep.equal([
        {
          role: "assistant",
          content: "yes",
          reasoning_content: "hm",
          tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
        },
      ]);
    });

    it("writes results of tools before what the user says, and instructions where they stand", () => {
      const turns = [
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a" },
            { type: "text", text: "go on" },
          ],
        },
        { role: "system", content: "be brief" },
      ];
      expect(translated("messages", { messages: turns }).messages).to.deep.equal([
        { role: "tool", tool_call_id: "a", content: "" },
        { role: "user", content: "go on" },
        { role: "system", content: "be brief" },
      ]);
    });

    const user = (block: JsonObject): JsonObject => ({ messages: [{ role: "user", content: [block] }] });
    const assistant = (...content: JsonObject[]): JsonObject => ({ messages: [{ role: "assistant", content }] });
    const use = { type: "tool_use", id: "a", name: "f", input: {} };
    for (const [name, added, path] of [
      ["a wider choice", { top_k: 5 }, "top_k"],
      ["thinking", { thinking: { type: "enabled", budget_tokens: 1_024 } }, "thinking"],
      ["a fifth stop text", { stop_sequences: ["a", "b", "c", "d", "e"] }, "stop_sequences"],
      ["more about the user", { metadata: { user_id: "u", other: "x" } }, "metadata.other"],
      ["a cache", { cache_control: { type: "ephemeral" } }, "cache_control"],
      [
        "a cache of instructions",
        { system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }] },
        "system[0].cache_control",
      ],
      [
        "a tool that the provider runs",
        { tools: [{ type: "web_search_20250305", name: "web_search" }] },
        "tools[0].type",
      ],
      ["a choice nobody knows", { tool_choice: { type: "some" } }, "tool_choice.type"],
      ["a document", user({ type: "document", source: {} }), "messages[0].content[0].type"],
      [
        "a picture kept at the provider",
        user({ type: "image", source: { type: "file", file_id: "f" } }),
        "messages[0].content[0].source.type",
      ],
      [
        "a result that is an error",
        user({ type: "tool_result", tool_use_id: "a", content: "x", is_error: true }),
        "messages[0].content[0].is_error",
      ],
      [
        "a picture as a result",
        user({ type: "tool_result", tool_use_id: "a", content: [{ type: "image", source: {} }] }),
        "messages[0].content[0].content[0].type",
      ],
      [
        "a result after other content",
        {
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: "x" },
                { type: "tool_result", tool_use_id: "a" },
              ],
            },
          ],
        },
        "messages[0].content[1]",
      ],
      [
        "a signed thought",
        assistant({ type: "thinking", thinking: "hm", signature: "s" }),
        "messages[0].content[0].signature",
      ],
      [
        "a thought only the provider can read",
        assistant({ type: "redacted_thinking", data: "x" }),
        "messages[0].content[0].type",
      ],
      ["a text after a call", assistant(use, { type: "text", text: "x" }), "messages[0].content[1]"],
      [
        "a call by code at the provider",
        assistant({ ...use, caller: { type: "code_execution_20250825", tool_id: "t" } }),
        "messages[0].content[0].caller",
      ],
      ["citations", assistant({ type: "text", text: "x", citations: [{}] }), "messages[0].content[0].citations"],
      ["a member nobody knows", { some_day: 1 }, "some_day"],
    ] as const) {
      it(`refuses ${name} by its name`, () => {
        expect(fault("messages", added))
          .to.match(/^no equivalent in the other model API: /)
          .and.contain(`\`${path}\``);
      });
    }
  });

  it("says which member has another kind than it must, and cuts long names", () => {
    expect(fault("chat", { messages: "hello" })).to.equal("invalid request: `messages`: expected a list");
    expect(fault("chat", { model: 5 })).to.equal("invalid request: `model`: expected a string");
    expect(fault("messages", { max_tokens: null })).to.equal("invalid request: `max_tokens`: expected a number");
    expect(fault("messages", { messages: [7] })).to.equal("invalid request: `messages[0]`: expected an object");
    expect(fault("chat", { ["x".repeat(10_000)]: 1 })).to.have.length.below(200);
  });

  it("keeps names like `__proto__` inside arguments as plain data, and every prototype as it was [S18]", () => {
    const input = JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as JsonObject;
    const content = [{ type: "tool_use", id: "a", name: "f", input }];
    const there = translated("messages", { messages: [{ role: "assistant", content }] });
    const back = translateRequest("chat", "messages", there);
    expect(JSON.stringify(back)).to.contain(JSON.stringify(input));
    expect(({} as { polluted?: boolean }).polluted).to.equal(undefined);
  });
});
