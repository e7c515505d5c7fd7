/** The public API that a model request or its answer is written in. */
export type ModelApi = "chat" | "messages" | "responses";

/**
 * The purpose of a request: an answer of the model, the count of its own tokens, which providers of the messages API know, or
 * texts as vectors, which those of the chat API make.
 */
export type ModelPurpose = "answer" | "count" | "embed";

const answerTool: Readonly<Record<ModelApi, string>> = {
  chat: "chat.completions",
  messages: "messages",
  responses: "responses",
};

/** The `tool` of an action that is a request of an API. */
export function modelTool(api: ModelApi, purpose: ModelPurpose): string {
  if (purpose === "count") return "messages.count_tokens";
  return purpose === "embed" ? "embeddings" : answerTool[api];
}

/** Tokens of one request, as counted by the provider. */
export interface TokenUsage {
  /** All input tokens, including those read from or written to a cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The part of the input that was read from a cache. */
  readonly cachedInputTokens?: number;
  /** The part of the input that was written to a cache. */
  readonly cacheWriteTokens?: number;
  /** The part of the output that is reasoning. */
  readonly reasoningTokens?: number;
}

/**
 * Hints that a request does without: they are about caches, billing, labels and effort, or repeat what a text says, as
 * `is_error` does beside the result of a tool. A name with a dot is of a member of a member.
 */
export const droppedHints = [
  "cache_control",
  "context_management",
  "eager_input_streaming",
  "is_error",
  "metadata",
  "output_config.effort",
  "prompt_cache_key",
  "prompt_cache_retention",
  "reasoning_effort",
  "safety_identifier",
  "service_tier",
  "store",
  "thinking",
  "verbosity",
] as const;

/** Members of a model request that carry no content; the last two change the answer, and are dropped only where that is asked for. */
export const modelHints = [...droppedHints, "output_config", "top_k"] as const;
export type Hint = (typeof modelHints)[number];
