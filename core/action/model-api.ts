/** The public API that a model request or its answer is written in: chat completions, or messages. */
export type ModelApi = "chat" | "messages";

/** The `tool` of an action that is a request of that API. */
export const modelTool: Readonly<Record<ModelApi, string>> = { chat: "chat.completions", messages: "messages" };

/** What a provider counted for one request, in tokens. */
export interface TokenUsage {
  /** All of the input, whether it was read from a cache, written to one, or neither. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The part of the input that was read from a cache. */
  readonly cachedInputTokens?: number;
  /** The part of the input that was written to a cache. */
  readonly cacheWriteTokens?: number;
  /** The part of the output that is thinking. */
  readonly reasoningTokens?: number;
}

/** Members of a request that say how to answer or to bill, and nothing of what was said. */
export const modelHints = [
  "cache_control",
  "context_management",
  "output_config",
  "prompt_cache_key",
  "reasoning_effort",
  "safety_identifier",
  "service_tier",
  "store",
  "thinking",
  "top_k",
  "verbosity",
] as const;
export type Hint = (typeof modelHints)[number];
