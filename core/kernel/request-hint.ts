/** Members of a request that say how to answer or to bill, and nothing of what was said. */
export type Hint =
  | "cache_control"
  | "context_management"
  | "output_config"
  | "prompt_cache_key"
  | "reasoning_effort"
  | "safety_identifier"
  | "service_tier"
  | "store"
  | "thinking"
  | "top_k"
  | "verbosity";
