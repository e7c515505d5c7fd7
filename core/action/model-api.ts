/** The public API that a model request or its answer is written in: chat completions, or messages. */
export type ModelApi = "chat" | "messages";

/** The `tool` of an action that is a request of that API. */
export const modelTool: Readonly<Record<ModelApi, string>> = { chat: "chat.completions", messages: "messages" };

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

/** Members of a model request that control processing or billing and carry no content. */
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
