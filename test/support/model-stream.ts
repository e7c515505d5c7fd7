import { Buffer } from "node:buffer";
import fc from "fast-check";
import type { Json, JsonObject } from "../../core/action/json.ts";
import type { ModelApi } from "../../core/action/model-api.ts";
import type { ResponseOptions } from "../../core/provider/wire/content.ts";
import { EventReader, type WireEvent } from "../../core/provider/wire/event-reader.ts";
import { StreamReader } from "../../core/provider/wire/stream-reader.ts";
import { StreamTranslator } from "../../core/provider/wire/translate.ts";
import { type Answer, chatUsage, detailsOf, messagesUsage, responsesAnswer, stopReasonOf } from "./model-answer.ts";

/** How a provider cuts an answer into events. */
export interface Manner {
  /** Lengths of the pieces of each text, over and over. */
  readonly sizes: readonly number[];
  /** Whether calls of tools come by turns. */
  readonly woven: boolean;
  readonly lineEnd: "\n" | "\r\n" | "\r";
}

export const manner: fc.Arbitrary<Manner> = fc.record({
  sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 }),
  woven: fc.boolean(),
  lineEnd: fc.constantFrom("\n" as const, "\r\n" as const, "\r" as const),
});

/** An answer as the bytes of a stream, as a provider of that API would send it. */
export function streamOf(api: ModelApi, answer: Answer, manner: Manner): Uint8Array {
  const render = { chat: chatEvents, messages: messagesEvents, responses: responsesEvents };
  const events = render[api](answer, manner);
  return Buffer.from(events.join("\n\n").concat("\n\n").replaceAll("\n", manner.lineEnd));
}

function pieces(text: string, sizes: readonly number[]): readonly string[] {
  const characters = [...text];
  const cut: string[] = [];
  for (let at = 0, turn = 0; at < characters.length; turn++) {
    const size = sizes[turn % sizes.length] as number;
    cut.push(characters.slice(at, at + size).join(""));
    at += size;
  }
  return cut;
}

function chatEvents(answer: Answer, { sizes, woven }: Manner): readonly string[] {
  const head = { id: "answer-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "the-model" };
  const chunk = (delta: JsonObject, finish: string | null = null): string =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null })}`;
  const each = (member: string, text: string): readonly string[] =>
    pieces(text, sizes).map((piece) => chunk({ [member]: piece }));
  const calls = answer.calls.map(({ id, name, input }, index) => [
    chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    ...pieces(JSON.stringify(input), sizes).map((piece) =>
      chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ]);
  const finish = { end: "stop", length: "length", tool: "tool_calls", refusal: "content_filter" }[answer.stop];
  return [
    chunk({ role: "assistant", content: "", refusal: null }),
    ...each("reasoning_content", answer.thinking),
    ...each("content", answer.text),
    ...each("refusal", answer.refusal ?? ""),
    ...(woven ? weave(calls) : calls.flat()),
    chunk({}, finish),
    `data: ${JSON.stringify({ ...head, choices: [], usage: chatUsage(answer) })}`,
    "data: [DONE]",
  ];
}

/** The first of each list, then the second of each, and so on. */
function weave(lists: readonly (readonly string[])[]): readonly string[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, turn) => lists.flatMap((list) => list.slice(turn, turn + 1))).flat();
}

function messagesEvents(answer: Answer, { sizes }: Manner): readonly string[] {
  const { output_tokens: output, ...input } = messagesUsage(answer);
  const message = { id: "answer-1", type: "message", role: "assistant", model: "the-model", content: [] };
  const open = { stop_reason: null, stop_sequence: null, usage: { ...input, output_tokens: 1 } };
  const ping: JsonObject = { type: "ping" };
  const blocks = [
    ...(answer.thinking === "" ? [] : [block({ type: "thinking", thinking: "", signature: "" }, answer.thinking)]),
    ...(answer.text === "" ? [] : [block({ type: "text", text: "" }, answer.text)]),
    ...answer.calls.map(({ id, name, input: given }) =>
      block({ type: "tool_use", id, name, input: {} }, JSON.stringify(given)),
    ),
  ];
  const stopped = {
    stop_reason: stopReasonOf(answer),
    stop_sequence: null,
    ...(answer.refusal === undefined ? {} : { stop_details: detailsOf(answer.refusal) }),
  };
  return [
    { type: "message_start", message: { ...message, ...open } },
    ping,
    ...blocks.flatMap(({ start, text }, index) => [
      { type: "content_block_start", index, content_block: start },
      ...pieces(text, sizes).map((piece) => ({ type: "content_block_delta", index, delta: deltaOf(start, piece) })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: stopped, usage: { output_tokens: output as number } },
    { type: "message_stop" },
  ].map((event: JsonObject) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}`);
}

function block(start: JsonObject, text: string): { readonly start: JsonObject; readonly text: string } {
  return { start, text };
}

function deltaOf({ type }: JsonObject, piece: string): JsonObject {
  if (type === "text") return { type: "text_delta", text: piece };
  if (type === "thinking") return { type: "thinking_delta", thinking: piece };
  return { type: "input_json_delta", partial_json: piece };
}

function responsesEvents(answer: Answer, { sizes, woven }: Manner): readonly string[] {
  const response = responsesAnswer(answer);
  const items = response.output as readonly JsonObject[];
  const begun = { ...response, status: "in_progress", incomplete_details: null, output: [], usage: null };
  const calls = items.flatMap((item, index) => (item.type === "function_call" ? [callEvents(item, index, sizes)] : []));
  const events: readonly JsonObject[] = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...items.flatMap((item, index) => (item.type === "function_call" ? [] : itemEvents(item, index, sizes))),
    ...(woven ? openAtOnce(calls) : calls.flat()),
    { type: `response.${String(response.status)}`, response },
  ];
  return events.map(({ type, ...data }, number) => {
    const event = JSON.stringify({ type: type as string, sequence_number: number, ...data });
    return `event: ${String(type)}\ndata: ${event}`;
  });
}

/** All begin, then all go on by turns: the next place is free once an item has begun. */
function openAtOnce(calls: readonly (readonly JsonObject[])[]): readonly JsonObject[] {
  const rest = calls.map((events) => events.slice(1));
  const longest = Math.max(0, ...rest.map(({ length }) => length));
  const turns = Array.from({ length: longest }, (_, turn) => rest.flatMap((events) => events.slice(turn, turn + 1)));
  return [...calls.flatMap((events) => events.slice(0, 1)), ...turns.flat()];
}

function callEvents(item: JsonObject, index: number, sizes: readonly number[]): readonly JsonObject[] {
  const place = { item_id: item.id as string, output_index: index };
  const given = item.arguments as string;
  const name = "response.function_call_arguments";
  return [
    {
      type: "response.output_item.added",
      output_index: index,
      item: { ...item, arguments: "", status: "in_progress" },
    },
    ...pieces(given, sizes).map((delta) => ({ type: `${name}.delta`, ...place, delta, obfuscation: "xYz0" })),
    { type: `${name}.done`, ...place, arguments: given },
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function itemEvents(item: JsonObject, index: number, sizes: readonly number[]): readonly JsonObject[] {
  const parts = item.content as readonly JsonObject[];
  return [
    { type: "response.output_item.added", output_index: index, item: { ...item, content: [] } },
    ...parts.flatMap((part, place) =>
      partEvents(part, { item_id: item.id as string, output_index: index }, place, sizes),
    ),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function partEvents(
  part: JsonObject,
  item: JsonObject,
  index: number,
  sizes: readonly number[],
): readonly JsonObject[] {
  const place = { ...item, content_index: index };
  const key = part.type === "refusal" ? "refusal" : "text";
  const name = `response.${String(part.type)}`;
  return [
    { type: "response.content_part.added", ...place, part: { ...part, [key]: "" } },
    ...pieces(part[key] as string, sizes).map((delta) => ({ type: `${name}.delta`, ...place, delta })),
    { type: `${name}.done`, ...place, [key]: part[key] as string },
    { type: "response.content_part.done", ...place, part },
  ];
}

export function readEvents(chunks: readonly Uint8Array[]): readonly WireEvent[] {
  const reader = new EventReader();
  return [...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end()];
}

export function translateEvents(
  from: ModelApi,
  to: ModelApi,
  events: readonly WireEvent[],
  options: ResponseOptions = {},
): readonly WireEvent[] {
  const translator = new StreamTranslator(from, to, options);
  return events.flatMap((event) => translator.push(event));
}

/** The answer that a client puts together of a stream. */
export function bodyOf(api: ModelApi, events: readonly WireEvent[]): JsonObject {
  const reader = new StreamReader(api);
  for (const event of events) reader.read(event);
  return reader.body();
}

/** The JSON that events carry, without the mark that ends a chat stream. */
export function dataOf(events: readonly WireEvent[]): readonly Json[] {
  return events
    .filter(({ keepAlive, data }) => keepAlive !== true && data !== "[DONE]")
    .map(({ data }) => JSON.parse(data) as Json);
}
