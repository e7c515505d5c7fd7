import { Buffer } from "node:buffer";
import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../core/action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../../core/action/json.ts";
import { valueAt } from "../../../../core/action/json-pointer.ts";
import type { ModelApi } from "../../../../core/action/model-api.ts";
import { jsonEvent, textEvent, type WireEvent } from "../../../../core/provider/wire/event-reader.ts";
import { StreamReader } from "../../../../core/provider/wire/stream-reader.ts";
import type { StreamStep } from "../../../../core/provider/wire/stream-step.ts";
import { growthOf, maxGrowth } from "../../../support/duration.ts";
import { type Answer, answer, chatAnswer, meaningOf } from "../../../support/model-answer.ts";
import { bodyOf, type Manner, manner, readEvents, streamOf } from "../../../support/model-stream.ts";
import { recordedApi, recordedBytes, recordedNames } from "../../../support/recorded-stream.ts";

const apis = ["chat", "messages", "responses"] as const;
const canary = "CANARY in the mine";

function eventsOf(api: ModelApi, a: Answer, how: Manner): readonly WireEvent[] {
  return readEvents([streamOf(api, a, how)]);
}

function fixture(name: string): readonly WireEvent[] {
  return readEvents([recordedBytes(name)]);
}

function readAll(api: ModelApi, events: readonly WireEvent[]): readonly StreamStep[] {
  const reader = new StreamReader(api);
  return events.map((event) => reader.read(event));
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

/** All texts of one pointer, joined. */
function joined(steps: readonly StreamStep[], kind: "pieces" | "unknown"): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { pointer, text } of steps.flatMap((step) => step[kind])) {
    texts.set(pointer, (texts.get(pointer) ?? "") + text);
  }
  return texts;
}

describe("StreamReader", () => {
  it("points with each piece at the text of the answer that it adds to", () => {
    fc.assert(
      fc.property(answer, manner, (a, how) => {
        for (const api of apis) {
          const events = eventsOf(api, a, how);
          const body = bodyOf(api, events);
          for (const [pointer, text] of joined(readAll(api, events), "pieces")) {
            const value = valueAt(body, pointer);
            expect(isJsonObject(value) ? JSON.stringify(value) : value, pointer).to.equal(text);
          }
        }
      }),
    );
  });

  it("says what was counted, once it was, and that the stream ends with its last event alone", () => {
    fc.assert(
      fc.property(answer, manner, (a, how) => {
        for (const api of apis) {
          const steps = readAll(api, eventsOf(api, a, how));
          const { input, output, cached, written } = a.usage;
          expect(steps.filter(({ usage }) => usage !== undefined).at(-1)?.usage).to.deep.equal({
            inputTokens: input + cached + written,
            outputTokens: output,
            cachedInputTokens: cached,
            cacheWriteTokens: written,
            ...(api === "responses" ? { reasoningTokens: 0 } : {}),
          });
          expect(steps.findIndex(({ terminal }) => terminal)).to.equal(steps.length - 1);
        }
      }),
    );
  });

  it("leaves an event as it is where each piece is replaced by itself", () => {
    fc.assert(
      fc.property(answer, manner, (a, how) => {
        for (const api of apis) {
          const reader = new StreamReader(api);
          for (const event of eventsOf(api, a, how)) {
            const { pieces, terminal } = reader.read(event);
            if (terminal || event.keepAlive === true) continue;
            const same = reader.rewrite(
              event,
              pieces.map(({ text }) => text),
            );
            expect(JSON.parse(same.data)).to.deep.equal(JSON.parse(event.data));
          }
        }
      }),
    );
  });

  it("replaces the texts of events and nothing else", () => {
    fc.assert(
      fc.property(answer, manner, (a, how) => {
        for (const api of apis) {
          const reader = new StreamReader(api);
          const masked = eventsOf(api, a, how).map((event) => {
            const { pieces } = reader.read(event);
            return pieces.length === 0 && !reader.isStale(event)
              ? event
              : reader.rewrite(
                  event,
                  pieces.map(({ text }) => mask(text)),
                );
          });
          const spoken = { ...a, text: mask(a.text), thinking: mask(a.thinking), calls: [] };
          const calls = (meaningOf("chat", chatAnswer(a)).calls as readonly JsonObject[]).length;
          const bare = { ...meaningWithoutInput(api, bodyOf(api, masked)) };
          expect(bare.text).to.equal(spoken.text);
          expect(bare.thinking).to.equal(spoken.thinking);
          expect(bare.calls).to.equal(calls);
        }
      }),
    );
  });

  it("refuses another number of texts than an event has", () => {
    const reader = new StreamReader("messages");
    const event = jsonEvent("messages", {
      type: "content_block_start",
      index: 0,
      content_block: { type: "text", text: "a" },
    });
    expect(() => reader.rewrite(event, [])).to.throw(TypeError);
    expect(() => reader.rewrite(event, ["a", "b"])).to.throw(TypeError);
  });

  for (const name of recordedNames()) {
    it(`accounts for every text that reaches the client, wherever a provider puts it in ${name}`, () => {
      const events = fixture(name);
      const isObject = ({ data }: WireEvent): boolean => data.startsWith("{");
      let seen = 0;
      for (const [at, event] of events.entries()) {
        for (const planted of isObject(event) ? plantings(JSON.parse(event.data) as JsonObject) : []) {
          const told = events.map((each, index) => (index === at ? jsonEvent(recordedApi(name), planted) : each));
          const said = fault(() => {
            const reader = new StreamReader(recordedApi(name));
            const steps = told.map((each) => reader.read(each));
            seen++;
            const planting = told[at] as WireEvent;
            const own = steps[at]?.pieces.map(({ text }) => text) ?? [];
            if (reader.isStale(planting) && !reader.rewrite(planting, own).data.includes(canary)) return;
            const texts = steps.flatMap(({ pieces, unknown }) => [...pieces, ...unknown].map(({ text }) => text));
            expect(texts.join(""), JSON.stringify(planted)).to.contain(canary);
          });
          if (said !== "no fault") expect(said).to.match(/^PROVIDER_INVALID /);
        }
      }
      expect(seen).to.be.above(events.length);
    });
  }

  it("accounts for comments, ids and names of events", () => {
    const events = readEvents([Buffer.from(': a note\nid: 7\nevent: other\ndata: {"choices":[]}\n\n: alive\n\n')]);
    expect(joined(readAll("chat", events), "unknown")).to.deep.equal(
      new Map([
        ["/~1comment", ": a note\nid: 7: alive"],
        ["/~1event", "other"],
      ]),
    );
  });

  it("holds what providers write of themselves for known, so that ordinary streams have next to nothing unknown", () => {
    const unknown = (name: string): readonly string[] => {
      const steps = readAll(recordedApi(name), fixture(name));
      const growing = steps.flatMap((step) =>
        step.unknown.flatMap(({ pointer, isComplete }) => (isComplete === true ? [] : [pointer])),
      );
      return [...new Set(growing)];
    };
    for (const name of ["chat-text", "chat-filtered", "chat-reasoning", "messages-text"]) {
      expect(unknown(name), name).to.deep.equal([]);
    }
    expect(unknown("chat-tools")).to.deep.equal(["/~1choices~1delta~1tool_calls~1function~1name"]);
  });

  it("says of each id, model and fingerprint once that it is complete", () => {
    const own = readAll("chat", fixture("chat-text")).flatMap(({ unknown }) => unknown);
    expect(own.map(({ isComplete }) => isComplete)).to.deep.equal([true, true, true]);
    expect(own.map(({ pointer }) => pointer)).to.deep.equal(["/~1id 0", "/~1model 1", "/~1system_fingerprint 2"]);
  });

  it("says which texts are whole, where the API does", () => {
    const steps = readAll("messages", fixture("messages-thinking"));
    expect(steps.flatMap(({ finished }) => finished)).to.deep.equal([
      "/content/0/thinking",
      "/content/0/signature",
      "/content/2/text",
    ]);
    const chat = readAll("chat", fixture("chat-reasoning"));
    expect(chat.map(({ finished }) => finished)).to.deep.equal([
      [],
      [],
      ["/choices/0/message/reasoning_content"],
      [],
      [],
      [],
    ]);
  });

  it("refuses thinking that goes on behind what it led to, because it was called whole", () => {
    const said = (delta: JsonObject): WireEvent => jsonEvent("chat", { choices: [{ index: 0, delta }] });
    const events = [said({ reasoning_content: "a" }), said({ content: "b" }), said({ reasoning_content: "c" })];
    expect(fault(() => readAll("chat", events))).to.equal(
      "PROVIDER_INVALID expected `choices[].delta.reasoning_content` to be before all other text",
    );
  });

  const unnumbered = (...calls: readonly (readonly [string, string])[]): WireEvent =>
    jsonEvent("chat", {
      choices: [
        { index: 0, delta: { tool_calls: calls.map(([id, name]) => ({ id, function: { name, arguments: "{}" } })) } },
      ],
    });

  it("tells tool calls apart that come whole in one chunk without an index", () => {
    const events = [unnumbered(["a", "f"], ["b", "g"]), textEvent("[DONE]")];
    expect(bodyOf("chat", events))
      .to.have.nested.property("choices[0].message.tool_calls")
      .that.deep.equals([
        { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "b", type: "function", function: { name: "g", arguments: "{}" } },
      ]);
  });

  it("refuses tool calls without an index that come in more than one chunk: clients tell them apart differently", () => {
    expect(fault(() => readAll("chat", [unnumbered(["a", "f"]), unnumbered(["b", "g"])]))).to.equal(
      "PROVIDER_INVALID expected `choices[].delta.tool_calls[].index` to be given where calls come in more than one chunk",
    );
  });

  it("puts the same answer together as the provider's own documents do", () => {
    expect(bodyOf("chat", fixture("chat-tools-interleaved"))).to.deep.equal({
      id: "chatcmpl-B7x2",
      object: "chat.completion",
      created: 1_760_000_000,
      model: "gpt-x-2026",
      service_tier: "default",
      system_fingerprint: "fp_44709d6fcb",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Looking.",
            refusal: null,
            tool_calls: [
              { id: "call_a1", type: "function", function: { name: "get_weather", arguments: '{"city":"Köln"}' } },
              {
                id: "call_b2",
                type: "function",
                function: { name: "get_time", arguments: '{"zone":"Europe/Berlin"}' },
              },
            ],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 25,
        completion_tokens: 12,
        total_tokens: 37,
        prompt_tokens_details: { cached_tokens: 10, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 0,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
    });
    expect(bodyOf("messages", fixture("messages-tools"))).to.deep.equal({
      id: "msg_01Fq",
      type: "message",
      role: "assistant",
      model: "claude-x-2026",
      content: [
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "toolu_a1", name: "get_weather", input: { city: "Köln" } },
        { type: "tool_use", id: "toolu_b2", name: "get_time", input: { zone: "Europe/Berlin" } },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: {
        input_tokens: 15,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 10,
        output_tokens: 12,
        service_tier: "standard",
      },
    });
  });

  it("shows the input of a tool as the text it is until it is whole, and where it never is", () => {
    const events = fixture("messages-tools");
    const input = (count: number): Json | undefined =>
      valueAt(bodyOf("messages", events.slice(0, count)), "/content/1/input");
    const begun = events.findIndex(({ data }) => data.includes('"toolu_a1"')) + 1;
    expect(input(begun)).to.deep.equal({});
    expect(input(begun + 2)).to.equal('{"city":');
    expect(input(begun + 4)).to.deep.equal({ city: "Köln" });
    const cut = [...events.slice(0, begun + 2), ...events.slice(begun + 3)];
    expect(valueAt(bodyOf("messages", cut), "/content/1/input")).to.equal('{"city":');
  });

  it("tells an error in mid-stream, which ends it", () => {
    for (const [name, type] of [
      ["chat-error", "server_error"],
      ["messages-error", "overloaded_error"],
    ] as const) {
      const last = readAll(recordedApi(name), fixture(name)).at(-1);
      expect(last).to.deep.include({ terminal: true });
      expect(last?.error).to.include({ type });
    }
    for (const [name, code] of [
      ["responses-error", "ERR_SOMETHING"],
      ["responses-failed", "server_error"],
    ] as const) {
      const last = readAll("responses", fixture(name)).at(-1);
      expect(last).to.deep.include({ terminal: true });
      expect(last?.error).to.include({ code });
    }
  });

  it("takes the mark of the end after an error of the chat API, once, and nothing else", () => {
    const [error, mark] = [jsonEvent("chat", { error: { message: "gone" } }), textEvent("[DONE]")];
    expect(readAll("chat", [error, mark]).map(({ terminal }) => terminal)).to.deep.equal([true, true]);
    const after = "PROVIDER_INVALID expected nothing after the end of the stream";
    for (const more of [[error], [mark, mark], [jsonEvent("chat", { choices: [] })]]) {
      expect(fault(() => readAll("chat", [error, ...more]))).to.equal(after);
    }
    expect(fault(() => readAll("chat", [mark, mark]))).to.equal(after);
  });

  it("holds a tool's arguments for of use only once they are whole", () => {
    const reader = new StreamReader("chat");
    const whole = ["/choices/0/message/tool_calls/1/function/arguments", "/content/1/input", "/output/1/arguments"];
    expect(whole.map((pointer) => reader.isWhole(pointer))).to.deep.equal([true, true, true]);
    const parts = ["/choices/0/message/content", "/content/0/text", "/content/0/thinking"];
    expect(parts.map((pointer) => reader.isWhole(pointer))).to.deep.equal([false, false, false]);
  });

  describe("of the responses API, which repeats each text", () => {
    it("replaces a text wherever it is repeated, whatever the parts it came in", () => {
      fc.assert(
        fc.property(answer, manner, (a, how) => {
          const reader = new StreamReader("responses");
          const events = eventsOf("responses", { ...a, text: `${a.text}SECRET`, calls: [] }, how);
          const written = events.map((event) => {
            const texts = reader.read(event).pieces.map(({ text }) => text.replaceAll(/[SECRT]/g, "*"));
            return texts.length > 0 || reader.isStale(event) ? reader.rewrite(event, texts) : event;
          });
          const told = Buffer.concat(written.map(({ raw }) => raw)).toString();
          expect(told).to.not.contain("SECRET");
          expect(meaningOf("responses", bodyOf("responses", written)).text).to.equal(
            `${a.text.replaceAll(/[SECRT]/g, "*")}******`,
          );
          const last = JSON.parse(written.at(-1)?.data ?? "") as { readonly response: JsonObject };
          expect(last.response.output).to.deep.equal(bodyOf("responses", written).output);
        }),
      );
    });

    it("sends no tokens of what it replaces", () => {
      const reader = new StreamReader("responses");
      const [created, ...rest] = fixture("responses-text");
      reader.read(created as WireEvent);
      for (const event of rest) {
        const data = JSON.parse(event.data) as JsonObject;
        const logprobs = [{ token: "Grüße", bytes: [71, 114], logprob: -0.1, top_logprobs: [] }];
        const told = jsonEvent("responses", data.type === "response.output_text.delta" ? { ...data, logprobs } : data);
        const { pieces, terminal } = reader.read(told);
        const written =
          pieces.length === 0
            ? told
            : reader.rewrite(
                told,
                pieces.map(() => "[mark]"),
              );
        expect(written.data).to.not.contain('token"');
        if (terminal) return;
      }
    });

    it("knows what a response repeats of its request, and reports anything else in its place", () => {
      const tools = [
        { type: "function", name: "look", description: "Looks at a thing.", parameters: { type: "object" } },
      ];
      const request = { input: "x", instructions: "Be very brief.", tools };
      const read = (echo: JsonObject): string => {
        const reader = new StreamReader("responses", undefined, request);
        const response = { id: "r", object: "response", model: "m", output: [], ...echo };
        const step = reader.read(jsonEvent("responses", { type: "response.created", sequence_number: 0, response }));
        return step.unknown.map(({ text }) => text).join("");
      };
      const [tool] = tools as readonly JsonObject[];
      expect(read({ instructions: "Be very brief.", tools: [{ ...tool, strict: true }] })).to.equal("");
      expect(read({ instructions: "Be very brief. Or not." })).to.contain("Or not.");
      expect(read({ tools: [{ ...tool, description: "Looks at another thing." }] })).to.contain("another thing");
    });

    it("reads events that have no name but the type of their data", () => {
      const events = fixture("responses-text").map(({ data }) => textEvent(data));
      expect(bodyOf("responses", events)).to.deep.equal(bodyOf("responses", fixture("responses-text")));
    });
  });

  describe("when the stream is malformed", () => {
    const harmless = /-cut$|-no-reason$|-no-start$|chat-late-arguments$|chat-nameless-call$/;
    for (const name of recordedNames("malformed/").filter((each) => !harmless.test(each))) {
      it(`refuses ${name}, which two clients could read differently`, () => {
        expect(fault(() => readAll(recordedApi(name), fixture(name)))).to.match(/^PROVIDER_INVALID /);
      });
    }

    it("says of no stream that was cut that it ended", () => {
      for (const name of ["malformed/chat-cut", "malformed/messages-cut", "malformed/responses-cut"]) {
        const steps = readAll(recordedApi(name), fixture(name));
        expect(steps.some(({ terminal }) => terminal)).to.equal(false);
      }
    });
  });

  describe("when it is not trusted", () => {
    const chunk = (delta: JsonObject): WireEvent => jsonEvent("chat", { choices: [{ index: 0, delta }] });

    it("refuses a deep event, in no more than linear time [S17]", async () => {
      const deep = (levels: number): WireEvent => textEvent(`{"choices":${"[".repeat(levels)}`);
      const read = (event: WireEvent): string => fault(() => readAll("chat", [event]));
      expect(read(deep(200_000))).to.contain("PROVIDER_INVALID JSON exceeds a bound");
      expect(await growthOf(deep, read, 200_000)).to.be.below(maxGrowth);
    });

    it("keeps names like `__proto__` as plain data, and every prototype as it was [S18]", () => {
      const text =
        '{"__proto__":{"polluted":"in the mine"},"choices":[{"index":0,"delta":{"__proto__":{"content":"x"}}}]}';
      const reader = new StreamReader("chat");
      const { unknown, pieces } = reader.read(textEvent(text));
      expect(unknown.map((piece) => piece.text)).to.include.members(["in the mine", "x"]);
      expect(pieces).to.deep.equal([]);
      expect(reader.rewrite(textEvent(text), []).data).to.equal(text);
      expect(({} as { polluted?: string }).polluted).to.equal(undefined);
    });

    it("refuses an answer beyond its bound, however small its pieces are", () => {
      const reader = new StreamReader("chat", 1_000);
      const act = (): void => {
        for (let turn = 0; turn < 101; turn++) reader.read(chunk({ content: "0123456789" }));
      };
      expect(fault(act)).to.equal("PROVIDER_INVALID expected an answer of at most 1000 characters, got more");
    });

    it("refuses more unknown members than any API has", () => {
      const events = Array.from({ length: 2_000 }, (_, turn) => chunk({ [`member${turn}`]: "x" }));
      expect(fault(() => readAll("chat", events))).to.contain("at most 1024 unknown members");
    });

    it("refuses an index that would make a long list", () => {
      const far = jsonEvent("chat", { choices: [{ index: 4_000_000_000, delta: { content: "x" } }] });
      expect(fault(() => readAll("chat", [far]))).to.contain(
        "expected `choices[].index` to be a whole number below 128",
      );
    });

    it("reads 10,000 events in time that grows with their number", () => {
      const reader = new StreamReader("chat");
      const timed = (count: number): number => {
        const start = performance.now();
        for (let turn = 0; turn < count; turn++) reader.read(chunk({ content: "some words " }));
        return performance.now() - start;
      };
      timed(2_000);
      const [first, second] = [timed(10_000), timed(10_000)];
      expect(second).to.be.below(first * 5 + 100); // were it to read again what it has read, it would be far more
      expect((valueAt(reader.body(), "/choices/0/message/content") as string).length).to.equal(22_000 * 11);
    });
  });
});

function mask(text: string): string {
  return "#".repeat(text.length);
}

/** The texts of an answer whose tools' arguments are no JSON any more. */
function meaningWithoutInput(api: ModelApi, body: JsonObject): JsonObject {
  if (api === "responses") {
    const items = body.output as readonly JsonObject[];
    const calls = items.filter(({ type }) => type === "function_call").length;
    const { text, thinking } = meaningOf(api, {
      ...body,
      output: items.filter(({ type }) => type !== "function_call"),
    });
    return { calls, text: text as Json, thinking: thinking as Json };
  }
  const calls = api === "chat" ? (valueAt(body, "/choices/0/message/tool_calls") ?? []) : blocksOf(body, "tool_use");
  const text = api === "chat" ? valueAt(body, "/choices/0/message/content") : textOf(body, "text");
  const thinking = api === "chat" ? valueAt(body, "/choices/0/message/reasoning_content") : textOf(body, "thinking");
  return { calls: (calls as readonly Json[]).length, text: text ?? "", thinking: thinking ?? "" };
}

function blocksOf(body: JsonObject, type: string): readonly JsonObject[] {
  return (body.content as readonly JsonObject[]).filter((block) => block.type === type);
}

function textOf(body: JsonObject, type: string): string {
  return blocksOf(body, type)
    .map((block) => block[type] as string)
    .join("");
}

/** Names that one of the APIs has somewhere: a reader that knows them must not overlook them elsewhere. */
const names = [
  ...["id", "type", "role", "name", "index", "model", "message", "choices", "delta", "usage", "error", "content_block"],
  ...["text", "thinking", "signature", "partial_json", "input", "content", "citation", "stop_sequence", "stop_details"],
  ...["reasoning_content", "refusal", "tool_calls", "function_call", "function", "arguments", "logprobs", "aside"],
  ...["output", "item", "part", "response", "summary", "code", "instructions", "tools", "item_id", "output_index"],
  ...["annotations", "annotation", "metadata", "status", "output_text", "encrypted_content", "obfuscation", "call_id"],
];

/** The same event with the canary in each of its objects, under every name and as one, and in place of each leaf. */
function plantings(data: Json): readonly JsonObject[] {
  const changed = (value: Json): readonly Json[] => {
    if (!Array.isArray(value) && !isJsonObject(value)) return [canary];
    if (Array.isArray(value)) {
      const inside = value.flatMap((item, at) => changed(item as Json).map((other) => value.with(at, other) as Json));
      return [...inside, [...value, { type: canary }]];
    }
    const object = value as JsonObject;
    const inside = Object.entries(object).flatMap(([name, member]) =>
      changed(member).map((other) => ({ ...object, [name]: other })),
    );
    const added = names
      .filter((name) => !(name in object))
      .flatMap((name) => [canary, { text: canary }, [{ a: [canary] }]].map((other) => ({ ...object, [name]: other })));
    return [...inside, ...added, { ...object, [canary]: 1 }];
  };
  return changed(data) as readonly JsonObject[];
}
