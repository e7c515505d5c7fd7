import { Buffer } from "node:buffer";
import type { ActionEffect, FactStatement } from "../action/action-fact.ts";
import type { ModelApi } from "../action/model-api.ts";
import type { FileForm, ProviderForm, UpstreamForm, WebhookForm, WitnessForm } from "./file-schema.ts";
import type { TrustPolicy } from "./trust-policy.ts";

/**
 * A checked form with the keys in camelCase, read-only. A mapping whose keys the operator chooses keeps them. The meaning
 * of each key is the description in the schema.
 */
export type Camel<T> = T extends string | number | boolean | null
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Camel<Item>[]
    : string extends keyof T
      ? Readonly<T>
      : { readonly [Key in keyof T as CamelCase<Key & string>]: Camel<T[Key]> };

type CamelCase<Key extends string> = Key extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Key;

type Sections = Camel<FileForm>;

/** Everything an operator can set: checked, defaults filled in, every path absolute, deep-frozen. */
export interface GatewayConfig
  extends Pick<
    Sections,
    "listen" | "egress" | "mcpGateway" | "usage" | "tickets" | "limits" | "log" | "state" | "dataDir"
  > {
  /** Path of the file; null in local mode. */
  readonly source: string | null;
  readonly keys: readonly KeyConfig[];
  /** Null: only keys authenticate. */
  readonly oauth: OauthConfig | null;
  readonly console: ConsoleConfig;
  readonly upstreams: readonly UpstreamConfig[];
  /** By program, with subcommands and a flag where they are given. */
  readonly effects: Readonly<Record<string, ActionEffect>>;
  readonly providers: readonly ProviderConfig[];
  readonly modelGateway: Omit<Sections["modelGateway"], "routes" | "tools"> & {
    readonly routes: readonly ModelRoute[];
    readonly tools: Omit<Sections["modelGateway"]["tools"], "facts"> & {
      readonly facts: Readonly<Record<string, FactStatement>>;
    };
  };
  readonly policy: Omit<Sections["policy"], "engines"> & { readonly engines: readonly EngineConfig[] };
  readonly extensions: ExtensionConfig;
  readonly sessions: SessionConfig;
  readonly evidence: Omit<Sections["evidence"], "witnesses"> & { readonly witnesses: readonly WitnessConfig[] };
  readonly approvals: ApprovalConfig;
  /** Durations in milliseconds. */
  readonly hooks: Pick<Sections["hooks"], "capabilities" | "dialects"> & { readonly maxWaitMs: number };
  /** The tenant is null where it is not configured and not clear from the keys: then nobody may make backups. */
  readonly resilience: Sections["resilience"];
  /** Null where no database is fed. */
  readonly reports: ReportsConfig | null;
  readonly telemetry: TelemetryConfig;
  /** Null for LevelDB alone. */
  readonly store: StoreConfig | null;
}

/** The database of several replicas, and where others reach this one. */
export interface StoreConfig {
  readonly engine: "postgres";
  /** May hold a password. */
  readonly url: string;
  readonly urlVariable: string;
  readonly secret: string;
  readonly secretVariable: string;
  /** Null: the machine's host name. */
  readonly host: string | null;
  readonly replicaPort: number;
  readonly leaseMs: number;
}

/** The relational database that records and usage are copied to. */
interface ReportsConfig {
  /** May hold a password. */
  readonly url: string;
  readonly urlVariable: string;
}

export type PackConfig = Sections["policy"]["packs"][number];
/** `token` is null where none is sent; `tokenVariable` names its variable. */
export type EngineConfig = Omit<Sections["policy"]["engines"][number], "tokenEnv"> & {
  readonly token: string | null;
  readonly tokenVariable: string | null;
};
export type UsageConfig = Sections["usage"];
export type BudgetConfig = UsageConfig["budgets"][number];

/** One API key; the key itself is not part of it. */
export interface KeyConfig extends Omit<Sections["keys"][number], "keyEnv" | "keyHash"> {
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

/** The access tokens that are accepted. `tenant` is null where `tenantClaim` is given. */
export type OauthConfig = Omit<Sections["oauth"], "issuer" | "audience" | "jwksCacheSeconds" | "jwksRefetchSeconds"> & {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksCacheMs: number;
  readonly jwksRefetchMs: number;
};

interface ConsoleConfig {
  /** The origin at which people reach it; null: this machine's own addresses. */
  readonly publicUrl: string | null;
  readonly recentSignInMs: number;
  /** Null: nobody signs in at a provider. */
  readonly oidc: OidcConfig | null;
}

/** The provider at which people sign in. Either `tenant` or `tenantClaim` is null, and either `role` or `roleClaim`. */
export type OidcConfig = Omit<Sections["console"]["oidc"], "issuer" | "clientId" | "clientSecretEnv"> & {
  readonly issuer: string;
  readonly clientId: string;
  /** Null for a public client. */
  readonly clientSecret: string | null;
  /** The variable that holds the secret. */
  readonly secretVariable: string | null;
};

interface ExtensionConfig {
  /** Loads only what is trusted. Requires a trust policy. */
  readonly strict: boolean;
  /** Null: nothing is trusted. */
  readonly trustPolicy: TrustPolicy | null;
  /** The files that the trust policy was read from, absolute. */
  readonly trustFiles: readonly string[];
}

/** Durations in milliseconds. */
type SessionConfig = Pick<
  Sections["sessions"],
  "gatewayTenant" | "drift" | "requireTask" | "taskSigners" | "maxActive"
> & {
  readonly reviewFlood: { readonly reviews: number; readonly windowMs: number };
  readonly risk: Omit<Sections["sessions"]["risk"], "windowSeconds"> & { readonly windowMs: number };
  readonly idleRetentionMs: number;
};

/** Durations in milliseconds. */
type ApprovalConfig = Pick<
  Sections["approvals"],
  "maxHeldBytes" | "allowSelfReview" | "allowBreakGlass" | "reviewUrl"
> & {
  readonly reviewMs: number;
  readonly useMs: number;
  readonly holdMs: number;
  /** Pending and approved, per tenant. */
  readonly maxLive: number;
  readonly webhooks: readonly WebhookConfig[];
};

/** The source of a header's or variable's value: the file itself, or the environment variable it names. */
export type ValueOrigin = "file" | { readonly variable: string };

interface WithOrigins {
  /** By name of a header or variable. A value without an origin counts as a secret. */
  readonly origins?: Readonly<Record<string, ValueOrigin>>;
}

export interface StdioEndpoint {
  readonly transport: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** The user and group of the process, by number; the gateway's own where absent. */
  readonly runAs?: { readonly uid: number; readonly gid: number };
  /** The environment of the process, beside PATH, LANG and, where it runs as the gateway's own user, HOME and TMPDIR. */
  readonly env: Readonly<Record<string, string>>;
}

export interface HttpEndpoint {
  /** `http`: Streamable HTTP; `sse`: the HTTP+SSE transport of revision 2024-11-05. */
  readonly transport: "http" | "sse";
  readonly url: string;
  /** Sent with every request; secrets are already resolved. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The settings of an upstream that do not depend on its transport. */
export type UpstreamSettings = Omit<
  Camel<UpstreamForm>,
  "transport" | "command" | "args" | "cwd" | "env" | "envFrom" | "runAs" | "url" | "headers" | "headersEnv" | "facts"
> & {
  /** By name or glob of a tool. */
  readonly facts: Readonly<Record<string, FactStatement>>;
};
export type StdioConfig = StdioEndpoint & UpstreamSettings & WithOrigins;
export type HttpConfig = HttpEndpoint & UpstreamSettings & WithOrigins;
export type UpstreamConfig = StdioConfig | HttpConfig;

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

/** Returns whether a header's value is set by the protocol or by the HTTP client. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return reservedHeaders.has(lower) || lower.startsWith("mcp-");
}

export interface HttpProvider {
  /** `openai`: the chat completions API; `responses`: the responses API; `anthropic`: the messages API. */
  readonly type: "openai" | "responses" | "anthropic";
  /** As the vendor's own clients expect it: with `/v1` for `openai` and `responses`, without it for `anthropic`. */
  readonly baseUrl: string;
  /** Null: none is sent. */
  readonly apiKey: string | null;
}

/** Answers by itself, without a network. */
export interface MockProvider {
  readonly type: "mock";
}

type ProviderSettings = Omit<Camel<ProviderForm>, "type" | "baseUrl" | "apiKeyEnv"> & {
  /** The variable that holds the key; null where there is no key. */
  readonly keyVariable?: string | null;
};
export type ProviderConfig = (HttpProvider | MockProvider) & ProviderSettings;
export type HttpProviderConfig = HttpProvider & ProviderSettings;

/** Returns the API of a provider of this type. */
export function apiOf(type: ProviderConfig["type"]): ModelApi {
  if (type === "anthropic") return "messages";
  return type === "responses" ? "responses" : "chat";
}

/** A provider, and its name for the model. */
export interface RouteStep {
  readonly provider: string;
  readonly model: string;
}

/** The destinations of requests for one model. */
export interface ModelRoute {
  /** The name that clients use. */
  readonly model: string;
  /** In order. Weights are given for all steps, or null for all: then the first step serves every session. */
  readonly steps: readonly (RouteStep & { readonly weight: number | null })[];
  /** True where the next step is tried after a failure. */
  readonly fallback: boolean;
  readonly canary: (RouteStep & { readonly percent: number }) | null;
}

export type NoticeType = WebhookForm["events"][number];

/** A receiver of notices about a tenant's approvals. */
export type WebhookConfig = Omit<Camel<WebhookForm>, "secretsEnv"> & {
  /** `whsec_<base64>`; each delivery carries a signature of each, so that they can be rotated. */
  readonly secrets: readonly string[];
  /** The variables that hold the secrets, in the same order. */
  readonly secretVariables?: readonly string[];
};

const minSecretBytes = 24;
const maxSecretBytes = 64;

/** The key in a secret as Standard Webhooks writes it: `whsec_` and the base64 of 24 to 64 bytes. Undefined for others. */
export function readWebhookSecret(text: string): Buffer | undefined {
  const [, base64 = ""] = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(base64, "base64");
  // A text that decodes but is not its own encoding would be another key to another decoder.
  if (key.toString("base64") !== base64) return undefined;
  return key.length >= minSecretBytes && key.length <= maxSecretBytes ? key : undefined;
}

export type WitnessPlace =
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "git"; readonly repository: string }
  | {
      readonly type: "http";
      readonly url: string;
      /** Sent with every request; secrets are already resolved. */
      readonly headers: Readonly<Record<string, string>>;
    };

/** A place outside the data folder that keeps notes about the head of each chain. */
export type WitnessConfig = WitnessPlace & Pick<Camel<WitnessForm>, "name" | "intervalMs"> & WithOrigins;

/** An OpenTelemetry collector. Without an endpoint nothing is exported. */
export type TelemetryTarget = Omit<Sections["telemetry"], "headersEnv" | "exemplars"> & {
  /** Values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
};
export type TelemetryConfig = TelemetryTarget & Pick<Sections["telemetry"], "exemplars"> & WithOrigins;
