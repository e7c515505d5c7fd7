import { Buffer } from "node:buffer";
import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../core/action/error.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { ModelApi } from "../../../../core/action/model-api.ts";
import { jsonEvent, type WireEvent } from "../../../../core/provider/wire/event-reader.ts";
import { cutBytes, cuts } from "../../../support/chunk.ts";
import { answer, chatAnswer, meaningOf, messagesAnswer, responsesAnswer } from "../../../support/model-answer.ts";
import { bodyOf, dataOf, manner, readEvents, streamOf, translateEvents } from "../../../support/model-stream.ts";
import { recordedApi, recordedBytes, recordedNames } from "../../../support/recorded-stream.ts";

const apis = ["chat", "messages", "responses"] as const;

function others(api: ModelApi): readonly ModelApi[] {
  return apis.filter((each) => each !== api);
}

function fault(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
  return "no fault";
}

describe("StreamTranslator", () => {
  it("gives one meaning for all nine pairs of client and provider, streamed and not, however it is cut", () => {
    fc.assert(
      fc.property(answer, manner, cuts, (a, how, places) => {
        const meaning = meaningOf("chat", chatAnswer(a));
        expect(meaningOf("messages", messagesAnswer(a))).to.deep.equal(meaning);
        expect(meaningOf("responses", responsesAnswer(a))).to.deep.equal(meaning);
        for (const from of apis) {
          const events = readEvents(cutBytes(streamOf(from, a, how), places));
          for (const to of apis) {
            const streamed = bodyOf(to, translateEvents(from, to, events));
            expect(meaningOf(to, streamed), `${from} to ${to}`).to.deep.equal(meaning);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it("gives that meaning there and back again", () => {
    fc.assert(
      fc.property(answer, manner, (a, how) => {
        for (const from of apis) {
          for (const to of others(from)) {
            const there = translateEvents(from, to, readEvents([streamOf(from, a, how)]), { includeUsage: true });
            const back = translateEvents(to, from, there);
            expect(meaningOf(from, bodyOf(from, back)), `${from} by ${to}`).to.deep.equal(
              meaningOf("chat", chatAnswer(a)),
            );
          }
        }
      }),
    );
  });

  it("writes bytes that are its events", () => {
    fc.assert(
      fc.property(answer, manner, cuts, (a, how, places) => {
        for (const from of apis) {
          for (const to of others(from)) {
            const events = translateEvents(from, to, readEvents([streamOf(from, a, how)]));
            const bytes = Buffer.concat(events.map(({ raw }) => raw));
            expect(dataOf(readEvents(cutBytes(bytes, places)))).to.deep.equal(dataOf(events));
          }
        }
      }),
    );
  });

  it("returns the provider's own events where no translation is needed", () => {
    for (const name of recordedNames()) {
      const events = readEvents([recordedBytes(name)]);
      expect(translateEvents(recordedApi(name), recordedApi(name), events), name).to.deep.equal(events);
      expect(Buffer.concat(events.map(({ raw }) => raw)).equals(recordedBytes(name)), name).to.equal(true);
    }
  });

  describe("to the messages API", () => {
    it("writes each block by itself, one after the other, where calls come so", () => {
      const events = translateEvents("chat", "messages", readEvents([recordedBytes("chat-tools")]));
      const marks = (dataOf(events) as readonly JsonObject[])
        .filter(({ type }) => type === "content_block_start" || type === "content_block_stop")
        .map(({ type, index }) => `${String(type).slice("content_block_".length)} ${String(index)}`);
      expect(marks).to.deep.equal(["start 0", "stop 0", "start 1", "stop 1"]);
    });

    it("writes calls that come by turns into blocks that are open at once", () => {
      const events = translateEvents("chat", "messages", readEvents([recordedBytes("chat-tools-interleaved")]));
      const body = bodyOf("messages", events);
      expect(body.content).to.deep.equal([
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "call_a1", name: "get_weather", input: { city: "Köln" } },
        { type: "tool_use", id: "call_b2", name: "get_time", input: { zone: "Europe/Berlin" } },
      ]);
    });

    it("says a refusal at the end, as that API does", () => {
      const body = bodyOf("messages", translateEvents("chat", "messages", readEvents([recordedBytes("chat-refusal")])));
      expect(body).to.deep.include({
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: null, explanation: "I can't help with that." },
      });
    });

    it("writes silence as a ping", () => {
      const events = translateEvents(
        "chat",
        "messages",
        readEvents([Buffer.from(": alive\n\n"), recordedBytes("chat-text")]),
      );
      expect(events[0]).to.include({ event: "ping", data: '{"type":"ping"}' });
    });
  });

  describe("to the chat API", () => {
    it("counts in a chunk of its own where the client asked for it, and in the last one of the choice where not", () => {
      const events = readEvents([recordedBytes("messages-text")]);
      const usages = (includeUsage: boolean): readonly (readonly [number, boolean])[] =>
        (dataOf(translateEvents("messages", "chat", events, { includeUsage })) as readonly JsonObject[]).map(
          ({ choices, usage }) => [(choices as readonly unknown[]).length, usage !== undefined] as const,
        );
      expect(usages(true).slice(-2)).to.deep.equal([
        [1, false],
        [0, true],
      ]); // prettier
      expect(usages(false).slice(-2)).to.deep.equal([
        [1, false],
        [1, true],
      ]);
    });

    it("writes the arguments of a call without any as an empty object", () => {
      const body = bodyOf(
        "chat",
        translateEvents("messages", "chat", readEvents([recordedBytes("messages-empty-input")])),
      );
      expect(meaningOf("chat", body).calls).to.deep.equal([{ id: "toolu_c3", name: "now", input: {} }]);
    });

    it("dates each chunk, and ends as that API does", () => {
      const events = translateEvents("messages", "chat", readEvents([recordedBytes("messages-tools")]), {
        created: 1_760_000_000,
      });
      expect((dataOf(events) as readonly JsonObject[]).map(({ created }) => created)).to.satisfy((dates: number[]) =>
        dates.every((date) => date === 1_760_000_000),
      );
      expect(events.at(-1)?.data).to.equal("[DONE]");
    });
  });

  describe("to the responses API", () => {
    const typesOf = (events: readonly WireEvent[]): readonly string[] =>
      (dataOf(events) as readonly JsonObject[]).map(({ type }) => String(type).replace("response.", ""));

    it("writes the documented events of a text, numbered from zero on", () => {
      const events = translateEvents("chat", "responses", readEvents([recordedBytes("chat-text")]));
      const deltas = typesOf(events).filter((type) => type === "output_text.delta").length;
      expect(typesOf(events)).to.deep.equal([
        ...["created", "in_progress", "output_item.added", "content_part.added"],
        ...Array.from({ length: deltas }, () => "output_text.delta"),
        ...["output_text.done", "content_part.done", "output_item.done", "completed"],
      ]);
      expect(deltas).to.be.above(1);
      expect(events.every(({ event, data }) => event === (JSON.parse(data) as JsonObject).type)).to.equal(true);
      const numbers = (dataOf(events) as readonly JsonObject[]).map(({ sequence_number: number }) => number);
      expect(numbers).to.deep.equal(events.map((_, index) => index));
    });

    it("writes calls that come by turns as items that are open at once", () => {
      const events = translateEvents("chat", "responses", readEvents([recordedBytes("chat-tools-interleaved")]));
      const { output } = bodyOf("responses", events);
      expect((output as readonly JsonObject[]).map(({ type, name }) => name ?? type)).to.deep.equal([
        "message",
        "get_weather",
        "get_time",
      ]);
      expect(typesOf(events).slice(-5)).to.deep.equal([
        ...["function_call_arguments.done", "output_item.done", "function_call_arguments.done", "output_item.done"],
        "completed",
      ]);
    });

    it("writes a refusal as a part of its own, and thinking as an item of its own", () => {
      const refusal = translateEvents("chat", "responses", readEvents([recordedBytes("chat-refusal")]));
      expect(typesOf(refusal)).to.include.members(["refusal.delta", "refusal.done", "content_part.done"]);
      const thinking = translateEvents("messages", "responses", readEvents([recordedBytes("messages-thinking")]));
      const [first] = bodyOf("responses", thinking).output as readonly JsonObject[];
      expect(first).to.include({ type: "reasoning" });
      expect(typesOf(thinking)).to.include.members(["reasoning_text.delta", "reasoning_text.done"]);
    });

    it("says why an answer is not complete, and repeats the settings of its request", () => {
      const request = { temperature: 0.5, metadata: { a: "b" }, tools: [{ type: "function", name: "secret" }] };
      const events = translateEvents("chat", "responses", readEvents([recordedBytes("chat-filtered")]), { request });
      const { type, response } = dataOf(events).at(-1) as { readonly type: string; readonly response: JsonObject };
      expect(type).to.equal("response.incomplete");
      expect(response).to.deep.include({ incomplete_details: { reason: "content_filter" }, temperature: 0.5 });
      expect(response).to.deep.include({ metadata: { a: "b" }, tools: [], store: false });
    });

    it("ends what failed in both of the events that clients look for", () => {
      const events = translateEvents("chat", "responses", readEvents([recordedBytes("chat-error")]));
      const last = events.at(-1)?.raw ?? Buffer.alloc(0);
      const [error, failed] = readEvents([last]).map(({ data }) => JSON.parse(data) as JsonObject);
      expect(error).to.include({ type: "error", sequence_number: 5 });
      const inner = error?.error as JsonObject | undefined;
      expect(inner?.message).to.equal(error?.message);
      expect(failed).to.include({ type: "response.failed", sequence_number: 6 });
      const response = failed?.response as JsonObject | undefined;
      expect(response?.error).to.deep.equal({ code: "server_error", message: error?.message });
    });
  });

  it("takes what a provider of the responses API says only at the end of an item or an answer", () => {
    const whole = (dataOf(readEvents([recordedBytes("responses-tools")])) as readonly JsonObject[]).filter(
      ({ type }) => !/arguments/.test(String(type)),
    );
    const events = whole.map((event) => jsonEvent("responses", event));
    expect(meaningOf("chat", bodyOf("chat", translateEvents("responses", "chat", events))).calls).to.deep.equal([
      { id: "call_unLAR8MvFNptuiZK6K6HCy5k", name: "get_weather", input: { location: "Paris, France" } },
      { id: "call_unLAR8MvFNptuiZK6K6HCy5l", name: "get_weather", input: { location: "Bogotá" } },
    ]);
    const ends = events.filter(({ event }) => event === "response.created" || event === "response.completed");
    const body = bodyOf("chat", translateEvents("responses", "chat", ends));
    expect(meaningOf("chat", body).calls).to.have.lengthOf(2);
  });

  it("shows the summary of what a provider of the responses API thought", () => {
    const body = bodyOf(
      "chat",
      translateEvents("responses", "chat", readEvents([recordedBytes("responses-reasoning")])),
    );
    expect(meaningOf("chat", body)).to.include({
      thinking: "**Weighing the question**",
      text: "Forty two.",
      stop: "stop",
    });
  });

  for (const [name, said] of [
    ["chat-error", "The server had an error while processing your request."],
    ["messages-error", "Overloaded"],
    ["responses-error", "Something went wrong"],
    ["responses-failed", "The model failed to generate a response."],
  ] as const) {
    for (const to of others(recordedApi(name))) {
      it(`ends ${name} in the other API's own error, which is its last event: ${to}`, () => {
        const events = translateEvents(recordedApi(name), to, readEvents([recordedBytes(name)]));
        const last = JSON.parse(events.at(-1)?.data ?? "") as { type?: string; error: { message: string } };
        expect(last.error.message).to.equal(said);
        expect(events.at(-1)?.event).to.equal(to === "chat" ? undefined : "error");
        expect(last.type).to.equal(to === "chat" ? undefined : "error");
      });
    }
  }

  describe("when the stream is malformed", () => {
    /** Calls of the responses API stay open until the end. */
    const harmless: ReadonlySet<string> = new Set(["malformed/chat-late-arguments responses"]);
    const whole = recordedNames("malformed/").filter((name) => !name.endsWith("-cut"));
    for (const name of whole) {
      for (const to of others(recordedApi(name)).filter((each) => !harmless.has(`${name} ${each}`))) {
        it(`refuses ${name} with PROVIDER_INVALID: ${to}`, () => {
          const act = (): unknown => translateEvents(recordedApi(name), to, readEvents([recordedBytes(name)]));
          expect(fault(act)).to.match(/^PROVIDER_INVALID /);
        });
      }
    }
  });

  it("writes no end to a stream that was cut", () => {
    const last = (name: string, to: ModelApi): string | undefined =>
      translateEvents(recordedApi(name), to, readEvents([recordedBytes(name)])).at(-1)?.data;
    expect(last("malformed/chat-cut", "messages")).to.contain('"text":"Par"');
    expect(last("malformed/messages-cut", "chat")).to.contain('"content":"Par"');
    expect(last("malformed/chat-cut", "responses")).to.contain('"delta":"Par"');
    expect(last("malformed/responses-cut", "chat")).to.contain('"content":", yes"');
  });

  describe("when the other API cannot express it", () => {
    const chunk = (choice: JsonObject): Uint8Array =>
      Buffer.from(
        `data: ${JSON.stringify({ id: "a", model: "m", choices: [{ index: 0, delta: {}, ...choice }] })}\n\n`,
      );
    const block = (start: JsonObject, delta?: JsonObject): Uint8Array => {
      const events: readonly JsonObject[] = [
        { type: "message_start", message: { id: "a", model: "m" } },
        { type: "content_block_start", index: 0, content_block: start },
        ...(delta === undefined ? [] : [{ type: "content_block_delta", index: 0, delta }]),
      ];
      return Buffer.from(
        events.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
      );
    };
    const text = { type: "text", text: "" };
    const named = (event: JsonObject): Uint8Array =>
      Buffer.from(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`);
    const item = (added: JsonObject): Uint8Array =>
      named({ type: "response.output_item.added", output_index: 0, item: added });
    for (const [name, from, bytes, path] of [
      ["a second choice", "chat", chunk({ index: 1 }), "choices[0].index"],
      ["log probabilities", "chat", chunk({ logprobs: { content: [{ token: "x" }] } }), "choices[0].logprobs"],
      ["a delta nobody knows", "chat", chunk({ delta: { audio: { data: "x" } } }), "choices[0].delta.audio"],
      [
        "a former function",
        "chat",
        chunk({ delta: { function_call: { name: "f" } } }),
        "choices[0].delta.function_call",
      ],
      [
        "a custom call",
        "chat",
        chunk({ delta: { tool_calls: [{ index: 0, type: "custom" }] } }),
        "choices[0].delta.tool_calls[0].type",
      ],
      [
        "a block nobody knows",
        "messages",
        block({ type: "server_tool_use", id: "a", name: "web_search", input: {} }),
        "content_block.type",
      ],
      ["a member of a block nobody knows", "messages", block({ ...text, aside: "x" }), "content_block.aside"],
      ["citations", "messages", block(text, { type: "citations_delta", citation: {} }), "delta.type"],
      [
        "a member of a delta nobody knows",
        "messages",
        block(text, { type: "text_delta", text: "x", aside: "y" }),
        "delta.aside",
      ],
      ["a search of the provider", "responses", item({ type: "web_search_call", id: "ws_1" }), "item.type"],
      ["an event of a search", "responses", named({ type: "response.web_search_call.searching" }), "type"],
      [
        "citations of the responses API",
        "responses",
        item({
          type: "message",
          content: [{ type: "output_text", text: "x", annotations: [{ type: "url_citation" }] }],
        }),
        "item.content[0].annotations",
      ],
      ["an event nobody knows", "messages", Buffer.from('event: some_day\ndata: {"type":"some_day"}\n\n'), "type"],
    ] as const) {
      for (const to of others(from)) {
        it(`refuses ${name} by its name: ${to}`, () => {
          expect(fault(() => translateEvents(from, to, readEvents([bytes])))).to.match(
            new RegExp(`^MODEL_UNTRANSLATABLE \`${path.replaceAll(/[[\].]/g, "\\$&")}\``),
          );
        });
      }
    }
  });

  it("takes tool calls that come whole in one chunk without an index, and refuses them in two", () => {
    const delta = (...ids: readonly string[]): string => {
      const calls = ids.map((id) => ({ id, function: { name: `tool_${id}`, arguments: "{}" } }));
      return `data: ${JSON.stringify({ id: "a", model: "m", choices: [{ index: 0, delta: { tool_calls: calls } }] })}\n\n`;
    };
    const told = JSON.stringify(translateEvents("chat", "messages", readEvents([Buffer.from(delta("x", "y"))])));
    expect(told).to.contain("tool_x").and.contain("tool_y");
    const apart = readEvents([Buffer.from(delta("x") + delta("y"))]);
    expect(fault(() => translateEvents("chat", "messages", apart))).to.contain(
      "given where calls come in more than one",
    );
  });

  describe("when it is not trusted", () => {
    it("refuses more calls, blocks and words of refusal than there can be", () => {
      const chunks = (delta: (turn: number) => JsonObject, count: number): Uint8Array =>
        Buffer.from(
          Array.from({ length: count }, (_, turn) => {
            const choices = [{ index: 0, delta: delta(turn) }];
            return `data: ${JSON.stringify({ id: "a", model: "m", choices })}\n\n`;
          }).join(""),
        );
      const calls = (index: number): JsonObject => ({ tool_calls: [{ index, id: "a", function: { name: "f" } }] });
      const refusals = (): JsonObject => ({ refusal: "x".repeat(1_024) });
      expect(fault(() => translateEvents("chat", "messages", readEvents([chunks(calls, 200)])))).to.contain(
        "a whole number below 128",
      );
      expect(fault(() => translateEvents("chat", "messages", readEvents([chunks(refusals, 100)])))).to.contain(
        "at most 65536 characters in all",
      );
    });
  });
});
