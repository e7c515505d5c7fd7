import type { Json, JsonObject } from "../../../kernel/json.ts";
import { textContent } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { toolChoice, toolDefinition } from "./tool.ts";
import { turnsOf } from "./turn.ts";

/** What an answer may take where a chat request sets no limit: the messages API wants one. */
export const defaultMaxTokens = 4_096;

/** A chat request as a messages request; MODEL_UNTRANSLATABLE names the first member that has no equivalent. */
export function toMessagesRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const { system, messages } = turnsOf(request.items("messages"));
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    max_tokens: maxTokens(request),
    ...(system.length === 0 ? {} : { system: textContent(system) }),
    messages,
    ...sampling(request),
    ...tools(request),
  };
  const user = request.string("user");
  if (user !== undefined) translated.metadata = { user_id: user };
  streaming(request, translated);
  neutral(request);
  request.end();
  return translated;
}

function maxTokens(request: Members): number {
  const former = request.number("max_tokens");
  const limit = request.number("max_completion_tokens") ?? former;
  if (former !== undefined && former !== limit) throw untranslatable("max_tokens", "`max_completion_tokens` differs");
  return limit ?? defaultMaxTokens;
}

function sampling(request: Members): JsonObject {
  const temperature = request.number("temperature");
  if (temperature !== undefined && temperature > 1) throw untranslatable("temperature", "expected at most 1");
  const topP = request.number("top_p");
  const stop = stopSequences(request);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined ? {} : { stop_sequences: stop }),
  };
}

function stopSequences(request: Members): readonly Json[] | undefined {
  const stop = request.take("stop");
  return typeof stop === "string" ? [stop] : request.list("stop");
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  const parallel = request.boolean("parallel_tool_calls") ?? true;
  const choice = toolChoice(request, parallel, definitions.length > 0);
  return {
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

/** The messages API always counts what it streams; whether a client of the chat API is told is up to the answer. */
function streaming(request: Members, translated: Record<string, Json>): void {
  const stream = request.boolean("stream");
  if (stream !== undefined) translated.stream = stream;
  const options = request.members("stream_options");
  options?.boolean("include_usage");
  options?.neutral("include_obfuscation", false);
  options?.end();
}

function neutral(request: Members): void {
  request.neutral("n", 1);
  request.neutral("frequency_penalty", 0);
  request.neutral("presence_penalty", 0);
  request.neutral("logit_bias");
  request.neutral("logprobs", false);
  request.neutral("top_logprobs", 0);
  request.neutral("store", false);
  request.neutral("metadata");
  request.neutral("service_tier", "auto");
  const format = request.members("response_format");
  if (format !== undefined && format.string("type") !== "text") throw untranslatable("response_format");
  format?.end();
}
