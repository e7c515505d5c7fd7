import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi, TokenUsage } from "../../action/model-api.ts";

/**
 * Reads the token counts of a response's `usage`; undefined where there are none, or not in whole numbers from zero on.
 * The messages API requires its counts, so all of them zero means that nothing was counted.
 */
export function readUsage(api: ModelApi, body: JsonObject): TokenUsage | undefined {
  const { usage } = body;
  if (!isJsonObject(usage)) return undefined;
  const read = readers[api](usage);
  const counts = Object.values(read).filter((count) => count !== undefined);
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0)) return undefined;
  if (read.inputTokens + read.outputTokens === 0) return undefined;
  return (read.cachedInputTokens ?? 0) + (read.cacheWriteTokens ?? 0) > read.inputTokens ? undefined : read;
}

/** Reads the token counts of embeddings, which have no output. */
export function readEmbeddingsUsage({ usage }: JsonObject): TokenUsage | undefined {
  return isJsonObject(usage) ? readUsage("chat", { usage: { ...usage, completion_tokens: 0 } }) : undefined;
}

const readers: Readonly<Record<ModelApi, (usage: JsonObject) => TokenUsage>> = {
  chat: readChatUsage,
  messages: readMessagesUsage,
  responses: readResponsesUsage,
};

function readResponsesUsage(usage: JsonObject): TokenUsage {
  const input = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const output = isJsonObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return readChatUsage({
    prompt_tokens: usage.input_tokens ?? null,
    completion_tokens: usage.output_tokens ?? null,
    prompt_tokens_details: input,
    completion_tokens_details: output,
  });
}

function readChatUsage(usage: JsonObject): TokenUsage {
  const input = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const output = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  return {
    inputTokens: count(usage.prompt_tokens),
    outputTokens: count(usage.completion_tokens),
    ...(input.cached_tokens == null ? {} : { cachedInputTokens: count(input.cached_tokens) }),
    ...(input.cache_write_tokens == null ? {} : { cacheWriteTokens: count(input.cache_write_tokens) }),
    ...(output.reasoning_tokens == null ? {} : { reasoningTokens: count(output.reasoning_tokens) }),
  };
}

function readMessagesUsage(usage: JsonObject): TokenUsage {
  const read = usage.cache_read_input_tokens ?? undefined;
  const written = usage.cache_creation_input_tokens ?? undefined;
  const output = isJsonObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return {
    inputTokens: count(usage.input_tokens) + count(read ?? 0) + count(written ?? 0),
    outputTokens: count(usage.output_tokens),
    ...(read === undefined ? {} : { cachedInputTokens: count(read) }),
    ...(written === undefined ? {} : { cacheWriteTokens: count(written) }),
    ...(output.thinking_tokens == null ? {} : { reasoningTokens: count(output.thinking_tokens) }),
  };
}

function count(value: Json | undefined): number {
  return typeof value === "number" ? value : Number.NaN;
}

/** Writes token counts for an API; without counts, zeros in the messages API and null in the others. */
export function writeUsage(api: ModelApi, usage: TokenUsage | undefined): Json {
  if (api === "messages") return messagesUsage(usage ?? { inputTokens: 0, outputTokens: 0 });
  if (usage === undefined) return null;
  return api === "responses" ? responsesUsage(usage) : chatUsage(usage);
}

function responsesUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens = 0, cacheWriteTokens, reasoningTokens = 0 } = usage;
  const written = cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens };
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens, ...written },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

function chatUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage;
  const input = {
    ...(cachedInputTokens === undefined ? {} : { cached_tokens: cachedInputTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens }),
  };
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...(Object.keys(input).length === 0 ? {} : { prompt_tokens_details: input }),
    ...(reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

function messagesUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens - (cachedInputTokens ?? 0) - (cacheWriteTokens ?? 0),
    output_tokens: outputTokens,
    ...(cachedInputTokens === undefined ? {} : { cache_read_input_tokens: cachedInputTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cache_creation_input_tokens: cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  };
}
