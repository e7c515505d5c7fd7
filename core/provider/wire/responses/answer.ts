import { GatewayError } from "../../../action/error.ts";
import { isGiven, type Json, type JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { readOnlyChoice } from "../chat-answer.ts";
import type { ResponseOptions } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { directItem, thoughtsOf } from "./request-to-chat.ts";

/** Translates a response of the chat API to one of the responses API, by the rules of the other translations. */
export function chatToResponsesAnswer(body: JsonObject, options: ResponseOptions): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const { choice, message } = readOnlyChoice(answer);
  choice.neutral("logprobs");
  const end = endOf(choice.requiredString("finish_reason"), choice.at("finish_reason"));
  const id = answer.requiredString("id");
  return responseObject({
    id,
    model: answer.requiredString("model"),
    end,
    output: outputOf(message, id, end.status === "incomplete" ? "incomplete" : "completed"),
    usage: readUsage("chat", body),
    options,
  });
}

/** The end of a response: its status, and the reason where it is not complete. */
export interface ResponseEnd {
  readonly status: "in_progress" | "completed" | "incomplete";
  readonly reason: string | null;
}

const ends: ReadonlyMap<string, ResponseEnd> = new Map([
  ["stop", { status: "completed", reason: null }],
  ["tool_calls", { status: "completed", reason: null }],
  ["length", { status: "incomplete", reason: "max_output_tokens" }],
  ["content_filter", { status: "incomplete", reason: "content_filter" }],
]);

/** Translates a finish reason of the chat API. Throws MODEL_UNTRANSLATABLE. */
export function endOf(finish: string, path: string): ResponseEnd {
  const end = ends.get(finish);
  if (end === undefined) throw untranslatable(path, `\`${finish.slice(0, 64)}\``);
  return end;
}

interface ResponseParts {
  readonly id: string;
  readonly model: string;
  readonly end: ResponseEnd;
  readonly output: readonly JsonObject[];
  readonly usage: TokenUsage | undefined;
  readonly options: ResponseOptions;
}

/** Settings of a request that its response repeats, with their defaults; neither instructions nor tools are repeated. */
const repeated: Readonly<Record<string, Json>> = {
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  reasoning: null,
  temperature: null,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  top_p: null,
  truncation: "disabled",
};

/** Writes the object that a response is, whole or in the first and last events of a stream. */
export function responseObject({ id, model, end, output, usage, options }: ResponseParts): JsonObject {
  const { request = {}, created = 0 } = options;
  const settings = Object.entries(repeated).map(([name, value]) => [name, request[name] ?? value] as const);
  return {
    id,
    object: "response",
    created_at: created,
    status: end.status,
    error: null,
    incomplete_details: end.reason === null ? null : { reason: end.reason },
    instructions: null,
    model,
    output,
    ...Object.fromEntries(settings),
    previous_response_id: null,
    store: false,
    tools: [],
    usage: usage === undefined ? null : writeUsage("responses", usage),
  };
}

function outputOf(message: Members, id: string, status: string): readonly JsonObject[] {
  message.string("role");
  const thought = message.string("reasoning_content") ?? "";
  const text = message.string("content") ?? "";
  const refusal = message.string("refusal") ?? "";
  const calls = message.items("tool_calls").map(callItem);
  message.neutral("annotations");
  message.end();
  const content = [...(text === "" ? [] : [outputText(text)]), ...(refusal === "" ? [] : [outputRefusal(refusal)])];
  return [
    ...(thought === "" ? [] : [reasoningItem(`rs_${id}`, [reasoningText(thought)])]),
    ...(content.length === 0 ? [] : [messageItem(`msg_${id}`, content, status)]),
    ...calls,
  ];
}

function callItem(call: Members): JsonObject {
  call.number("index"); // some servers include it outside of streams, too
  const id = call.requiredString("id");
  if ((call.string("type") ?? "function") !== "function") throw untranslatable(call.at("type"), "expected `function`");
  const named = call.members("function");
  if (named === undefined) throw call.expected("function", "an object");
  call.end();
  const name = named.requiredString("name");
  const given = named.string("arguments") ?? "";
  named.end();
  return functionCallItem(id, name, given.trim() === "" ? "{}" : given, "completed");
}

export function outputText(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

export function outputRefusal(refusal: string): JsonObject {
  return { type: "refusal", refusal };
}

export function reasoningText(text: string): JsonObject {
  return { type: "reasoning_text", text };
}

export function messageItem(id: string, content: readonly JsonObject[], status: string): JsonObject {
  return { id, type: "message", role: "assistant", status, content };
}

/** Thinking in plain text, which any provider can read again. */
export function reasoningItem(id: string, content: readonly JsonObject[]): JsonObject {
  return { id, type: "reasoning", summary: [], content };
}

export function functionCallItem(callId: string, name: string, given: string, status: string): JsonObject {
  return { id: `fc_${callId}`, type: "function_call", call_id: callId, name, arguments: given, status };
}

/**
 * Translates a response of the responses API to one of the chat API. Its content is translated or refused; the provider's own
 * members beside it (settings, tier, thinking that only the provider can read) are dropped. Throws PROVIDER_UNAVAILABLE for
 * a response that failed.
 */
export function responsesToChatAnswer(body: JsonObject): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const status = answer.string("status") ?? "completed";
  if (status === "failed") throw new GatewayError("PROVIDER_UNAVAILABLE", "the provider reported that it failed");
  const message = messageOf(answer);
  const usage = readUsage("responses", body);
  return {
    id: answer.requiredString("id"),
    object: "chat.completion",
    created: Math.floor(answer.number("created_at") ?? 0),
    model: answer.requiredString("model"),
    choices: [
      { index: 0, message, logprobs: null, finish_reason: finishOf(answer, status, isGiven(message.tool_calls)) },
    ],
    ...(usage === undefined ? {} : { usage: writeUsage("chat", usage) }),
  };
}

const finishes: ReadonlyMap<string, string> = new Map([
  ["max_output_tokens", "length"],
  ["content_filter", "content_filter"],
]);

/** Translates the status of a response to a finish reason of the chat API. Throws MODEL_UNTRANSLATABLE. */
export function finishOf(response: Members, status: string, callsTool: boolean): string {
  if (status === "completed") return callsTool ? "tool_calls" : "stop";
  const reason = response.members("incomplete_details")?.string("reason") ?? status;
  const finish = status === "incomplete" ? finishes.get(reason) : undefined;
  if (finish === undefined) throw untranslatable("status", `\`${reason.slice(0, 64)}\``);
  return finish;
}

function messageOf(answer: Members): JsonObject {
  const texts: string[] = [];
  const refusals: string[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  for (const item of answer.items("output")) {
    const type = item.requiredString("type");
    if (type === "message") addContent(item, texts, refusals);
    else if (type === "reasoning") thoughts.push(...shownThoughts(item));
    else if (type === "function_call") calls.push(toolCallOf(item));
    else throw untranslatable(item.at("type"), `\`${type.slice(0, 64)}\``);
  }
  return {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: refusals.length === 0 ? null : refusals.join(""),
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join("\n\n") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function addContent(item: Members, texts: string[], refusals: string[]): void {
  for (const part of item.items("content")) {
    const type = part.requiredString("type");
    if (type === "refusal") refusals.push(part.requiredString("refusal"));
    else if (type === "output_text") texts.push(part.requiredString("text"));
    else throw untranslatable(part.at("type"), `\`${type.slice(0, 64)}\``);
    part.neutral("annotations");
    part.neutral("logprobs");
    part.end();
  }
}

/** The thinking as far as it is shown: a summary, or all of it. */
function shownThoughts(item: Members): readonly string[] {
  const summary = thoughtsOf(item, "summary", "summary_text");
  return summary.length > 0 ? summary : thoughtsOf(item, "content", "reasoning_text");
}

function toolCallOf(item: Members): JsonObject {
  directItem(item);
  return {
    id: item.requiredString("call_id"),
    type: "function",
    function: { name: item.requiredString("name"), arguments: item.string("arguments") ?? "" },
  };
}
