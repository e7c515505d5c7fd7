import { Buffer } from "node:buffer";
import Anthropic from "anthropic-1";
import { expect } from "chai";
import fc from "fast-check";
import OpenAI from "openai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { ModelApi } from "../../../../core/action/model-api.ts";
import { modelErrorEvent } from "../../../../core/gateway/model/error.ts";
import { type Answer, answer, chatAnswer, meaningOf } from "../../../support/model-answer.ts";
import { type Manner, manner, readEvents, streamOf, translateEvents } from "../../../support/model-stream.ts";

const connection = { apiKey: "key", maxRetries: 0 };

/** A server that answers whatever it is asked with this stream. */
function answering(bytes: Uint8Array): typeof fetch {
  const headers = { "content-type": "text/event-stream" };
  return async () => new Response(Buffer.from(bytes), { status: 200, headers });
}

async function chatClient(bytes: Uint8Array): Promise<OpenAI.ChatCompletion> {
  const client = new OpenAI({ ...connection, baseURL: "http://provider.test/v1", fetch: answering(bytes) });
  return client.chat.completions.stream({ model: "m", messages: [] }).finalChatCompletion();
}

async function messagesClient(bytes: Uint8Array): Promise<Anthropic.Message> {
  const client = new Anthropic({ ...connection, baseURL: "http://provider.test", fetch: answering(bytes) });
  return client.messages.stream({ model: "m", max_tokens: 1, messages: [] }).finalMessage();
}

function translated(from: ModelApi, to: ModelApi, a: Answer, how: Manner): Uint8Array {
  const events = translateEvents(from, to, readEvents([streamOf(from, a, how)]), { includeUsage: true });
  return Buffer.concat(events.map(({ raw }) => raw));
}

/** As plain JSON: the clients hand out objects of their own classes. */
function meaning(api: ModelApi, body: unknown): JsonObject {
  return JSON.parse(JSON.stringify(meaningOf(api, body as JsonObject))) as JsonObject;
}

describe("the official clients, reading a stream of either API's provider", () => {
  it("put together what the answer means: the messages client", async () => {
    await fc.assert(
      fc.asyncProperty(answer, manner, async (a, how) => {
        for (const from of ["chat", "messages", "responses"] as const) {
          const got = await messagesClient(translated(from, "messages", a, how));
          expect(meaning("messages", got), from).to.deep.equal(meaning("chat", chatAnswer(a)));
        }
      }),
      { numRuns: 60 },
    );
  });

  it("put together what the answer means: the chat client, which has no member for what was thought", async () => {
    const whole = answer.filter(({ stop }) => stop === "end" || stop === "tool"); // it throws at all other ends
    await fc.assert(
      fc.asyncProperty(whole, manner, async (a, how) => {
        for (const from of ["chat", "messages", "responses"] as const) {
          const { thinking: _, ...got } = meaning("chat", await chatClient(translated(from, "chat", a, how)));
          const { thinking, ...expected } = meaning("chat", chatAnswer(a));
          expect(got, `${from}, having thought ${String(thinking)}`).to.deep.equal(expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("throw their own error, with our code, where we end a stream", async () => {
    const whole = { thinking: "", text: "hello", calls: [], stop: "end", refusal: undefined } as const;
    const a: Answer = { ...whole, usage: { input: 1, output: 1, cached: 0, written: 0 } };
    const cut = (api: ModelApi): Uint8Array => {
      const events = readEvents([streamOf(api, a, { sizes: [2], woven: false, lineEnd: "\n" })]).slice(0, 3);
      const end = modelErrorEvent(api, new GatewayError("POLICY_BLOCKED", "a rule"), "request-1", {
        sent: 3,
        answer: () => ({}),
      });
      return Buffer.concat([...events.map(({ raw }) => raw), end]);
    };
    const chat = await chatClient(cut("chat")).catch((error: unknown) => error);
    expect(chat).to.be.instanceOf(OpenAI.APIError).and.to.include({ code: "policy_blocked", type: "permission_error" });
    const messages = await messagesClient(cut("messages")).catch((error: unknown) => error);
    expect(messages).to.be.instanceOf(Anthropic.APIError).and.to.include({ type: "permission_error" });
    const { error } = messages as { readonly error: { readonly error: { readonly code: string } } };
    expect(error.error.code).to.equal("policy_blocked");
  });
});
