import type { ModelApi } from "./model-api.ts";

export interface HttpProvider {
  /** `openai`: whatever speaks chat completions; `anthropic`: whatever speaks messages. */
  readonly type: "openai" | "anthropic";
  /** As the vendor's own clients take it: with `/v1` for `openai`, without it for `anthropic`. */
  readonly baseUrl: string;
  /** Null: none is sent. */
  readonly apiKey: string | null;
}

/** Answers by itself, and asks nobody. */
export interface MockProvider {
  readonly type: "mock";
}

export interface ProviderSettings {
  readonly name: string;
  readonly enabled: boolean;
  /** The names by which clients may ask for its models. */
  readonly models: readonly string[];
  /** From asking to the first byte of an answer. */
  readonly firstByteTimeoutMs: number;
  /** Silence within an answer. */
  readonly idleTimeoutMs: number;
  /** The longest one answer may take. */
  readonly maxTimeoutMs: number;
  readonly maxRetries: number;
  /** Requests at once. */
  readonly maxConnections: number;
  readonly breaker: BreakerConfig;
}

export interface BreakerConfig {
  /** In a row. */
  readonly failures: number;
  readonly restMs: number;
}

export type ProviderConfig = (HttpProvider | MockProvider) & ProviderSettings;
export type HttpProviderConfig = HttpProvider & ProviderSettings;

/** A provider, and what it calls the model. */
export interface RouteStep {
  readonly provider: string;
  readonly model: string;
}

/** Where the requests for one model go. */
export interface ModelRoute {
  /** As clients say it. */
  readonly model: string;
  /** In order. Null: without weights, the first is asked; either all have one or none. */
  readonly steps: readonly (RouteStep & { readonly weight: number | null })[];
  /** Whether another step is asked where one failed. */
  readonly fallback: boolean;
  readonly canary: (RouteStep & { readonly percent: number }) | null;
}

/** The API that a provider of this type speaks. */
export function apiOf(type: ProviderConfig["type"]): ModelApi {
  return type === "anthropic" ? "messages" : "chat";
}
