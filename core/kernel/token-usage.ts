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
