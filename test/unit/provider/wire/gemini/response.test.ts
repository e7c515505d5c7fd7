import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../../core/action/error.ts";
import type { Json, JsonObject } from "../../../../../core/action/json.ts";
import { EventReader } from "../../../../../core/provider/wire/event-reader.ts";
import { toGeminiError } from "../../../../../core/provider/wire/gemini/error.ts";
import { toGeminiResponse } from "../../../../../core/provider/wire/gemini/response.ts";
import { toGeminiStream } from "../../../../../core/provider/wire/gemini/stream.ts";
import { translateResponse } from "../../../../../core/provider/wire/translate.ts";
import { cutBytes, cuts } from "../../../../support/chunk.ts";
import { answer, chatAnswer, messagesAnswer } from "../../../../support/model-answer.ts";
import { manner, readEvents, streamOf, translateEvents } from "../../../../support/model-stream.ts";
import { recordedApi, recordedBytes, recordedNames } from "../../../../support/recorded-stream.ts";

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: Json;
}

interface Shown {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly Json[];
  readonly finish: Json;
  readonly usage: Json;
  readonly ids: readonly Json[];
}

/** What a client puts together of the responses of a stream, or of a whole one. */
function shownBy(responses: readonly JsonObject[]): Shown {
  const candidates = responses.flatMap(({ candidates: list }) => (list ?? []) as readonly JsonObject[]);
  const parts = candidates.flatMap(({ content }) => (content as unknown as { readonly parts: readonly Part[] }).parts);
  const last = candidates.at(-1);
  const end = responses.at(-1);
  return {
    thinking: parts.map(({ text, thought }) => (thought === true ? text : "")).join(""),
    text: parts.map(({ text, thought }) => (thought === true ? "" : text)).join(""),
    calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
    finish: [last?.finishReason ?? null, last?.finishMessage ?? null],
    usage: end?.usageMetadata ?? null,
    ids: [end?.responseId ?? null, end?.modelVersion ?? null],
  };
}

function streamed(events: ReturnType<typeof readEvents>, showsThoughts = true): readonly JsonObject[] {
  const translate = toGeminiStream(showsThoughts);
  return events.flatMap((event) => translate(event));
}

describe("toGeminiStream(showsThoughts)", () => {
  it("means what the whole answer means, from each provider, however it is cut", () => {
    fc.assert(
      fc.property(answer, manner, cuts, fc.boolean(), (a, how, places, shows) => {
        const whole = shownBy([toGeminiResponse(chatAnswer(a), shows)]);
        expect(whole.thinking).to.equal(shows ? a.thinking : "");
        expect(whole.text).to.equal(a.text);
        expect(whole.calls).to.deep.equal(a.calls.map(({ id, name, input }) => ({ id, name, args: input })));
        for (const from of ["chat", "messages"] as const) {
          const events = readEvents(cutBytes(streamOf(from, a, how), places));
          expect(shownBy(streamed(translateEvents(from, "chat", events, { includeUsage: true }), shows))).to.deep.equal(
            whole,
          );
        }
        const translated = translateResponse("messages", "chat", messagesAnswer(a));
        expect(shownBy([toGeminiResponse(translated, shows)])).to.deep.equal(whole);
      }),
      { numRuns: 200 },
    );
  });

  for (const name of recordedNames()) {
    it(`reads ${name} alike at every cut`, () => {
      const bytes = recordedBytes(name);
      const uncut = readEvents([bytes]);
      expect(streamed(translateEvents(recordedApi(name), "chat", uncut, { includeUsage: true }))).to.not.deep.equal([]);
      // What is translated are events: where they are the same, so is what becomes of them.
      for (let at = 1; at < bytes.length; at++) {
        expect(isDeepStrictEqual(readEvents([bytes.subarray(0, at), bytes.subarray(at)]), uncut), `${at}`).to.equal(
          true,
        );
      }
    });
  }

  it("ends with one response that has the calls, the reason and the usage", () => {
    const responses = streamed(readEvents([recordedBytes("chat-tools")]));
    expect(responses.filter(({ usageMetadata }) => usageMetadata !== undefined).length).to.be.at.most(1);
    const ends = responses
      .flatMap(({ candidates }) => candidates as readonly JsonObject[])
      .map(({ finishReason }) => finishReason);
    expect(ends.at(-1)).to.equal("STOP");
    expect(ends.slice(0, -1).every((reason) => reason === undefined)).to.equal(true);
  });

  const head = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
  const chunk = (delta: Json, finish: Json = null, more: JsonObject = {}): string =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: finish, ...more }] })}\n\n`;
  const call = (json: string): Json => ({
    tool_calls: [{ index: 0, id: "c", type: "function", function: { name: "f", arguments: json } }],
  });
  const done = "data: [DONE]\n\n";
  const bad: Readonly<Record<string, readonly [readonly string[], string]>> = {
    "no reason of its end": [[chunk({ content: "x" }), done], "PROVIDER_INVALID"],
    "no chunk at all": [[done], "PROVIDER_INVALID"],
    "a second choice": [[chunk({ content: "x" }, null, { index: 1 })], "MODEL_UNTRANSLATABLE"],
    "an unknown member of a delta": [[chunk({ audio: { id: "1" } })], "MODEL_UNTRANSLATABLE"],
    "an unknown reason": [[chunk({}, "tired"), done], "MODEL_UNTRANSLATABLE"],
    "log probabilities": [[chunk({}, null, { logprobs: { content: [{}] } })], "MODEL_UNTRANSLATABLE"],
    "arguments that are no JSON": [[chunk(call("{")), chunk({}, "tool_calls"), done], "MODEL_UNTRANSLATABLE"],
    "arguments that are no object": [[chunk(call("[]")), chunk({}, "tool_calls"), done], "PROVIDER_INVALID"],
    "a number that is no double": [
      [chunk(call('{"n":12345678901234567890}')), chunk({}, "tool_calls"), done],
      "MODEL_UNTRANSLATABLE",
    ],
    "a call without a name": [[chunk({ tool_calls: [{ index: 0 }] })], "PROVIDER_INVALID"],
    "a call of number 128": [[chunk({ tool_calls: [{ index: 128 }] })], "PROVIDER_INVALID"],
  };
  for (const [what, [events, code]] of Object.entries(bad)) {
    it(`refuses ${what}`, () => {
      const read = new EventReader().push(Buffer.from(events.join("")));
      expect(() => streamed(read))
        .to.throw(GatewayError)
        .with.property("code", code);
    });
  }

  it("passes an error of the provider in its own envelope, and no end after it", () => {
    const error = `data: ${JSON.stringify({ error: { message: "overloaded", provider_request_id: "req_1" } })}\n\n`;
    const read = new EventReader().push(Buffer.from(error + done));
    const [shown, ...more] = streamed(read);
    expect(more).to.deep.equal([]);
    expect(shown).to.have.nested.property("error.message", "overloaded");
    expect(shown).to.have.nested.property("error.status", "INTERNAL");
    expect(shown).to.have.nested.property("error.details[0].metadata.provider_request_id", "req_1");
  });
});

describe("toGeminiError(status, body)", () => {
  for (const [status, name] of [
    [400, "INVALID_ARGUMENT"],
    [404, "NOT_FOUND"],
    [422, "INVALID_ARGUMENT"],
    [429, "RESOURCE_EXHAUSTED"],
    [500, "INTERNAL"],
    [503, "UNAVAILABLE"],
  ] as const) {
    it(`names ${status} ${name}`, () => {
      expect(toGeminiError(status, null)).to.deep.equal({
        error: { code: status, message: `the provider answered with status ${status}`, status: name },
      });
    });
  }
});
