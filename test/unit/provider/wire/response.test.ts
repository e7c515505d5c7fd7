import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { ModelApi } from "../../../../core/action/model-api.ts";
import { translateResponse } from "../../../../core/provider/wire/translate.ts";
import { answer, chatAnswer, meaningOf, messagesAnswer, responsesAnswer } from "../../../support/model-answer.ts";

const created = { created: 1_700_000_000 };
const message: JsonObject = { role: "assistant", content: "hello" };
const chat: JsonObject = { id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }] };
const messages: JsonObject = {
  id: "m",
  model: "m",
  content: [{ type: "text", text: "hello" }],
  stop_reason: "end_turn",
};

function fault(from: ModelApi, body: JsonObject): string {
  try {
    translateResponse(from, from === "chat" ? "messages" : "chat", body);
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
  return "translated";
}

function choosing(changed: JsonObject): JsonObject {
  return { ...chat, choices: [{ index: 0, message, finish_reason: "stop", ...changed }] };
}

describe("translateResponse(from, to, body)", () => {
  it("writes any answer of the messages API in the chat API", () => {
    fc.assert(
      fc.property(answer, (a) => {
        expect(translateResponse("messages", "chat", messagesAnswer(a), created)).to.deep.equal(chatAnswer(a));
      }),
    );
  });

  it("writes any answer of the chat API in the messages API", () => {
    fc.assert(
      fc.property(answer, (a) => {
        expect(translateResponse("chat", "messages", chatAnswer(a))).to.deep.equal(messagesAnswer(a));
      }),
    );
  });

  it("writes any answer of the chat API in the responses API", () => {
    fc.assert(
      fc.property(answer, (a) => {
        expect(translateResponse("chat", "responses", chatAnswer(a), created)).to.deep.equal(responsesAnswer(a));
      }),
    );
  });

  it("gives one meaning for all nine pairs of client and provider", () => {
    const apis = ["chat", "messages", "responses"] as const;
    fc.assert(
      fc.property(answer, (a) => {
        const bodies = { chat: chatAnswer(a), messages: messagesAnswer(a), responses: responsesAnswer(a) };
        const meanings = apis.flatMap((from) =>
          apis.map((to) => meaningOf(to, translateResponse(from, to, bodies[from], created))),
        );
        for (const meaning of meanings) expect(meaning).to.deep.equal(meanings[0]);
      }),
    );
  });

  it("says that a tool is to be called where the chat API says `stop` of the tool that had to be", () => {
    const calls = [{ id: "a", type: "function", function: { name: "f", arguments: "" } }];
    const body = translateResponse("chat", "messages", choosing({ message: { role: "assistant", tool_calls: calls } }));
    expect(body).to.include({ stop_reason: "tool_use" });
    expect(body.content).to.deep.equal([{ type: "tool_use", id: "a", name: "f", input: {} }]);
  });

  it("says that the model refused where the chat API says `stop` of words of refusal", () => {
    const body = translateResponse("chat", "messages", choosing({ message: { role: "assistant", refusal: "no" } }));
    expect(body).to.include({ stop_reason: "refusal" });
    expect(body.stop_details).to.deep.equal({ type: "refusal", category: null, explanation: "no" });
  });

  it("leaves behind what a provider tells of itself, but nothing of what the answer says", () => {
    const told = { system_fingerprint: "fp", timings: { ms: 1 }, service_tier: "default" };
    expect(translateResponse("chat", "messages", { ...chat, ...told })).to.deep.equal(
      translateResponse("chat", "messages", chat),
    );
    const thought = [
      { type: "redacted_thinking", data: "x" },
      { type: "thinking", thinking: "hm", signature: "s" },
    ];
    const body = translateResponse("messages", "chat", { ...messages, container: { id: "c" }, content: thought });
    expect((body.choices as readonly { message: JsonObject }[])[0]?.message).to.deep.equal({
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "hm",
    });
  });

  for (const [name, from, body, said] of [
    [
      "a second choice",
      "chat",
      { ...chat, choices: [...(choosing({}).choices as []), { index: 1 }] },
      "MODEL_UNTRANSLATABLE `choices[1]`",
    ],
    [
      "log probabilities",
      "chat",
      choosing({ logprobs: { content: [{ token: "x" }] } }),
      "MODEL_UNTRANSLATABLE `choices[0].logprobs`",
    ],
    [
      "audio",
      "chat",
      choosing({ message: { ...message, audio: { id: "a" } } }),
      "MODEL_UNTRANSLATABLE `choices[0].message.audio`",
    ],
    [
      "a member of the message nobody knows",
      "chat",
      choosing({ message: { ...message, aside: "x" } }),
      "MODEL_UNTRANSLATABLE `choices[0].message.aside`",
    ],
    [
      "a reason nobody knows",
      "chat",
      choosing({ finish_reason: "bored" }),
      "MODEL_UNTRANSLATABLE `choices[0].finish_reason`: `bored`",
    ],
    [
      "arguments cut off",
      "chat",
      choosing({ message: { tool_calls: [{ id: "a", function: { name: "f", arguments: '{"a' } }] } }),
      "MODEL_UNTRANSLATABLE `choices[0].message.tool_calls[0].function.arguments`: unterminated string at offset 1",
    ],
    ["no choice", "chat", { ...chat, choices: [] }, "PROVIDER_INVALID `choices`: expected one choice"],
    [
      "no reason",
      "chat",
      choosing({ finish_reason: null }),
      "PROVIDER_INVALID `choices[0].finish_reason`: expected a string",
    ],
    [
      "a text that is a list",
      "chat",
      choosing({ message: { content: ["x"] } }),
      "PROVIDER_INVALID `choices[0].message.content`: expected a string",
    ],
    [
      "a pause",
      "messages",
      { ...messages, stop_reason: "pause_turn" },
      "MODEL_UNTRANSLATABLE `stop_reason`: `pause_turn`",
    ],
    [
      "what a tool of the provider found",
      "messages",
      { ...messages, content: [{ type: "web_search_tool_result" }] },
      "MODEL_UNTRANSLATABLE `content[0].type`: `web_search_tool_result`",
    ],
    [
      "citations",
      "messages",
      { ...messages, content: [{ type: "text", text: "x", citations: [{}] }] },
      "MODEL_UNTRANSLATABLE `content[0].citations`",
    ],
    [
      "a member of a block nobody knows",
      "messages",
      { ...messages, content: [{ type: "text", text: "x", aside: "y" }] },
      "MODEL_UNTRANSLATABLE `content[0].aside`",
    ],
    [
      "an error where an answer should be",
      "messages",
      { type: "error", error: {} },
      "PROVIDER_INVALID `id`: expected a string",
    ],
  ] as const) {
    it(`refuses ${name}`, () => {
      expect(fault(from, body as JsonObject)).to.equal(said);
    });
  }
});
