import fc from "fast-check";
import { isJsonObject, type Json, type JsonObject } from "../../core/action/json.ts";
import type { ModelApi } from "../../core/action/model-api.ts";
import { readUsage } from "../../core/provider/wire/usage.ts";
import { type Call, call, chatCall, messagesCall } from "./model-conversation.ts";

/** An answer in the words of neither API, which the renderers write in both. */
export interface Answer {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly Call[];
  readonly stop: "end" | "length" | "tool" | "refusal";
  readonly refusal: string | undefined;
  readonly usage: {
    readonly input: number;
    readonly output: number;
    readonly cached: number;
    readonly written: number;
  };
}

const text = fc.string({ unit: "grapheme", maxLength: 60 });
const tokens = fc.integer({ min: 1, max: 1_000_000 });

export const answer: fc.Arbitrary<Answer> = fc
  .record({
    thinking: fc.oneof(fc.constant(""), text),
    text,
    calls: fc.array(call, { maxLength: 3 }),
    stop: fc.constantFrom("end" as const, "length" as const, "refusal" as const),
    refusal: text,
    usage: fc.record({ input: tokens, output: tokens, cached: fc.nat(1_000), written: fc.nat(1_000) }),
  })
  .map((drawn) => ({
    ...drawn,
    stop: drawn.calls.length > 0 && drawn.stop === "end" ? ("tool" as const) : drawn.stop,
    refusal: drawn.stop === "refusal" && drawn.refusal !== "" ? drawn.refusal : undefined,
  }));

export function chatAnswer(a: Answer): JsonObject {
  const finish = { end: "stop", length: "length", tool: "tool_calls", refusal: "content_filter" };
  return {
    id: "answer-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "the-model",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: a.text === "" ? null : a.text,
          refusal: a.refusal ?? null,
          ...(a.thinking === "" ? {} : { reasoning_content: a.thinking }),
          ...(a.calls.length === 0 ? {} : { tool_calls: a.calls.map(chatCall) }),
        },
        logprobs: null,
        finish_reason: finish[a.stop],
      },
    ],
    usage: chatUsage(a),
  };
}

export function chatUsage({ usage: { input, output, cached, written } }: Answer): JsonObject {
  const all = input + cached + written;
  return {
    prompt_tokens: all,
    completion_tokens: output,
    total_tokens: all + output,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
  };
}

export function messagesAnswer(a: Answer): JsonObject {
  return {
    id: "answer-1",
    type: "message",
    role: "assistant",
    model: "the-model",
    content: [
      ...(a.thinking === "" ? [] : [{ type: "thinking", thinking: a.thinking, signature: "" }]),
      ...(a.text === "" ? [] : [{ type: "text", text: a.text }]),
      ...a.calls.map(messagesCall),
    ],
    stop_reason: stopReasonOf(a),
    stop_sequence: null,
    ...(a.refusal === undefined ? {} : { stop_details: detailsOf(a.refusal) }),
    usage: messagesUsage(a),
  };
}

export function stopReasonOf(a: Answer): string {
  return { end: "end_turn", length: "max_tokens", tool: "tool_use", refusal: "refusal" }[a.stop];
}

export function detailsOf(refusal: string): JsonObject {
  return { type: "refusal", category: null, explanation: refusal };
}

export function messagesUsage({ usage: { input, output, cached, written } }: Answer): JsonObject {
  return {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: written,
  };
}

/** What an answer says in whatever API: all that must be equal for every pair of client and provider. */
export function meaningOf(api: ModelApi, body: JsonObject): JsonObject {
  const usage = (readUsage(api, body) ?? null) as Json;
  return {
    id: body.id as Json,
    model: body.model as Json,
    ...(api === "chat" ? chatMeaning(body) : messagesMeaning(body)),
    usage,
  };
}

function chatMeaning(body: JsonObject): JsonObject {
  const [choice] = body.choices as readonly JsonObject[];
  const message = choice?.message as JsonObject;
  const calls = (message.tool_calls ?? []) as unknown as readonly {
    id: string;
    function: { name: string; arguments: string };
  }[];
  return {
    thinking: message.reasoning_content ?? "",
    text: message.content ?? "",
    refusal: message.refusal ?? null,
    calls: calls.map(({ id, function: { name, arguments: input } }) => ({
      id,
      name,
      input: JSON.parse(input) as Json,
    })),
    stop: choice?.finish_reason as Json,
  };
}

function messagesMeaning(body: JsonObject): JsonObject {
  const blocks = body.content as readonly JsonObject[];
  const texts = (type: string, key: string): string =>
    blocks
      .filter((block) => block.type === type)
      .map((block) => block[key])
      .join("");
  const stops: Readonly<Record<string, string>> = {
    end_turn: "stop",
    stop_sequence: "stop",
    max_tokens: "length",
    tool_use: "tool_calls",
    refusal: "content_filter",
  };
  return {
    thinking: texts("thinking", "thinking"),
    text: texts("text", "text"),
    refusal: isJsonObject(body.stop_details) ? (body.stop_details.explanation as Json) : null,
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }) => ({ id, name, input }) as JsonObject),
    stop: stops[body.stop_reason as string] as string,
  };
}
