import { Buffer } from "node:buffer";
import type { Capability } from "../action/envelope.ts";
import type { ModelApi } from "../action/model-api.ts";

export interface StdioEndpoint {
  readonly transport: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Everything the process gets beside PATH, HOME, LANG and TMPDIR. */
  readonly env: Readonly<Record<string, string>>;
}

export interface HttpEndpoint {
  /** `http`: Streamable HTTP; `sse`: the HTTP+SSE transport of revision 2024-11-05. */
  readonly transport: "http" | "sse";
  readonly url: string;
  /** Sent with every request; secrets are already resolved. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface UpstreamSettings {
  readonly name: string;
  /** Put before each tool name that clients see. */
  readonly toolPrefix: string;
  readonly protocol: "auto" | "legacy" | "modern";
  /** `session`: one connection a client session; `shared`: one for all of them. */
  readonly connection: "session" | "shared";
  /** Silence allowed to one request; each progress notification starts it anew. */
  readonly timeoutMs: number;
  /** The longest one request may take, progress or not. */
  readonly maxTimeoutMs: number;
  /** Connecting and handshake together. */
  readonly startTimeoutMs: number;
  readonly maxConnections: number;
  /** A session's connection without requests is closed after this. */
  readonly idleMs: number;
  /** By tool name, or by glob with `*`. */
  readonly capabilities: Readonly<Record<string, Capability>>;
  readonly trustAnnotations: boolean;
  /** Globs of tools, and of methods, whose answers taint the session. */
  readonly untrusted: readonly string[];
}

export type UpstreamConfig = (StdioEndpoint | HttpEndpoint) & UpstreamSettings;
export type StdioConfig = StdioEndpoint & UpstreamSettings;
export type HttpConfig = HttpEndpoint & UpstreamSettings;

/** Headers that carry the conversation itself: a configured one would contradict the message, or forge it. */
const reservedHeaders: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "last-event-id",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a header's value is the protocol's or the HTTP client's to set. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return reservedHeaders.has(lower) || lower.startsWith("mcp-");
}

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

interface ProviderSettings {
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

/** What webhooks can be told of. */
export const noticeTypes = ["approval.pending", "approval.approved", "approval.denied", "approval.expired"] as const;
export type NoticeType = (typeof noticeTypes)[number];

/** Somebody outside who is told what happens to a tenant's approvals. */
export interface WebhookConfig {
  readonly name: string;
  readonly tenant: string;
  readonly url: string;
  /** `whsec_<base64>`; more than one while they change: each delivery carries a signature of each. */
  readonly secrets: readonly string[];
  readonly events: readonly NoticeType[];
  /** Connecting and answering together. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
}

const leastBytes = 24;
const maxBytes = 64;

/** The key in a secret as Standard Webhooks writes it: `whsec_` and the base64 of 24 to 64 bytes. Undefined for others. */
export function readWebhookSecret(text: string): Buffer | undefined {
  const [, base64 = ""] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(base64, "base64");
  // What decodes but is not what encoding gives would be another key to another decoder.
  if (key.toString("base64") !== base64) return undefined;
  return key.length >= leastBytes && key.length <= maxBytes ? key : undefined;
}

/** A place outside the data folder that is told where each chain stands. */
export type WitnessConfig = WitnessPlace & {
  readonly name: string;
  /** Time from one note to the next. */
  readonly intervalMs: number;
};

export type WitnessPlace =
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "git"; readonly repository: string }
  | {
      readonly type: "http";
      readonly url: string;
      /** Sent with every request; secrets are already resolved. */
      readonly headers: Readonly<Record<string, string>>;
    };

/** A collector of traces and metrics, and how it is told. */
export interface TelemetryTarget {
  /** Null: nobody is told. */
  readonly endpoint: string | null;
  readonly protocol: "http/protobuf" | "http/json";
  /** Values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of one request to it. */
  readonly timeoutMs: number;
  /** Of a hundred requests, how many are traced. */
  readonly samplePercent: number;
  /** Spans that wait. */
  readonly maxQueuedSpans: number;
  /** 0: no metrics are told. */
  readonly metricsIntervalMs: number;
}

/** What one principal may ask of models in a minute, and what tenants and keys may spend on them. */
export interface UsageConfig {
  readonly requestsPerMinute: number;
  /** Input and output together. */
  readonly tokensPerMinute: number;
  readonly budgets: readonly BudgetConfig[];
}

/** Tokens, input and output together, in days and months of UTC; null: any number. */
export interface BudgetConfig {
  readonly tenant: string;
  /** The id of a key; null: all of the tenant. */
  readonly key: string | null;
  readonly tokensPerDay: number | null;
  readonly tokensPerMonth: number | null;
}
