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

export function responsesAnswer(a: Answer): JsonObject {
  const content = [
    ...(a.text === "" ? [] : [{ type: "output_text", text: a.text, annotations: [], logprobs: [] }]),
    ...(a.refusal === undefined ? [] : [{ type: "refusal", refusal: a.refusal }]),
  ];
  const isWhole = a.stop === "end" || a.stop === "tool";
  const status = isWhole ? "completed" : "incomplete";
  const thought = { id: "rs_answer-1", type: "reasoning", summary: [] };
  return {
    id: "answer-1",
    object: "response",
    created_at: 1_700_000_000,
    status,
    error: null,
    incomplete_details: isWhole ? null : { reason: a.stop === "length" ? "max_output_tokens" : "content_filter" },
    instructions: null,
    model: "the-model",
    output: [
      ...(a.thinking === "" ? [] : [{ ...thought, content: [{ type: "reasoning_text", text: a.thinking }] }]),
      ...(content.length === 0 ? [] : [{ id: "msg_answer-1", type: "message", role: "assistant", status, content }]),
      ...a.calls.map(responsesCall),
    ],
    max_output_tokens: null,
    metadata: {},
    parallel_tool_calls: true,
    reasoning: null,
    temperature: null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    top_p: null,
    truncation: "disabled",
    previous_response_id: null,
    store: false,
    tools: [],
    usage: responsesUsage(a),
  };
}

export function responsesCall({ id, name, input }: Call): JsonObject {
  const given = JSON.stringify(input);
  return { id: `fc_${id}`, type: "function_call", call_id: id, name, arguments: given, status: "completed" };
}

function responsesUsage({ usage: { input, output, cached, written } }: Answer): JsonObject {
  const all = input + cached + written;
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: all + output,
  };
}

/** What an answer says in whatever API: all that must be equal for every pair of client and provider. */
export function meaningOf(api: ModelApi, body: JsonObject): JsonObject {
  const { reasoningTokens: _, ...usage } = readUsage(api, body) ?? {};
  const meanings = { chat: chatMeaning, messages: messagesMeaning, responses: responsesMeaning };
  return {
    id: body.id as Json,
    model: body.model as Json,
    ...meanings[api](body),
    usage: usage as Json,
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

function responsesMeaning(body: JsonObject): JsonObject {
  const items = body.output as readonly JsonObject[];
  const parts = items.flatMap(({ content }) => (content ?? []) as readonly JsonObject[]);
  const texts = (type: string, key: string): string =>
    parts
      .filter((part) => part.type === type)
      .map((part) => part[key])
      .join("");
  const calls = items.filter(({ type }) => type === "function_call");
  const reasons: Readonly<Record<string, string>> = { max_output_tokens: "length", content_filter: "content_filter" };
  const { reason } = (body.incomplete_details ?? {}) as JsonObject;
  const refusal = texts("refusal", "refusal");
  return {
    thinking: texts("reasoning_text", "text"),
    text: texts("output_text", "text"),
    refusal: refusal === "" ? null : refusal,
    calls: calls.map(({ call_id: id, name, arguments: given }) => ({
      id: id as Json,
      name: name as Json,
      input: JSON.parse(given as string) as Json,
    })),
    stop: reason === undefined ? (calls.length > 0 ? "tool_calls" : "stop") : (reasons[reason as string] as string),
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
