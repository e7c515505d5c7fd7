import type { Decision } from "../action/decision.ts";
import type { Phase } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import type { Hint } from "../action/model-api.ts";
import type { Mode } from "../action/policy.ts";
import type { Role } from "../action/role.ts";
import type {
  ModelRoute,
  ProviderConfig as ProviderSpec,
  TelemetryTarget,
  UpstreamConfig as UpstreamSpec,
  UsageConfig,
  WebhookConfig as WebhookSpec,
  WitnessConfig as WitnessSpec,
} from "./peer-config.ts";
import type { TrustPolicy } from "./trust-policy.ts";

/** Everything an operator can set, checked, with defaults filled in and every path absolute. Deep-frozen. */
export interface GatewayConfig {
  /** Path of the file; null in local mode. */
  readonly source: string | null;
  readonly listen: ListenConfig;
  readonly dataDir: string;
  /** Not enabled: everything is kept in memory and gone at the next start. */
  readonly state: { readonly enabled: boolean };
  readonly keys: readonly KeyConfig[];
  readonly mcpGateway: McpGatewayConfig;
  readonly upstreams: readonly UpstreamConfig[];
  readonly providers: readonly ProviderConfig[];
  readonly modelGateway: ModelGatewayConfig;
  readonly usage: UsageConfig;
  readonly policy: PolicyConfig;
  readonly extensions: ExtensionConfig;
  readonly sessions: SessionConfig;
  readonly tickets: TicketConfig;
  readonly evidence: EvidenceConfig;
  readonly approvals: ApprovalConfig;
  readonly resilience: ResilienceConfig;
  readonly telemetry: TelemetryConfig;
  readonly limits: LimitConfig;
  readonly log: { readonly level: LogLevel };
}

interface ListenConfig {
  /** Address of the gateway port. */
  readonly host: string;
  /** Address of the admin and metrics ports. */
  readonly adminHost: string;
  /** Port 0 takes any free port; so for all three. */
  readonly gatewayPort: number;
  readonly adminPort: number;
  readonly metricsPort: number;
  /** `host` or `host:port`, lower case. Empty: loopback names only. */
  readonly allowedHosts: readonly string[];
  /** `scheme://host[:port]`. Empty: loopback origins only. */
  readonly allowedOrigins: readonly string[];
}

/** One API key. The key itself is nowhere in it. */
export interface KeyConfig {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

interface McpGatewayConfig {
  readonly requireAuth: boolean;
  /** The tenant of a caller without a key; null exactly where `requireAuth` is true. */
  readonly anonymousTenant: string | null;
  /** `_meta` keys that reach the upstream, and therefore policy and fingerprint too. */
  readonly metaPassthrough: readonly string[];
  readonly maxSessions: number;
  readonly sessionIdleMs: number;
}

/** A provider as the fleet takes it, and where its key came from. */
export type ProviderConfig = ProviderSpec & {
  /** Null where it has no key. */
  readonly keyVariable: string | null;
};

export interface ModelGatewayConfig {
  /** Whether requests in the messages API may offer tools. */
  readonly toolPassthrough: boolean;
  /** Requests at once. */
  readonly maxConcurrent: number;
  /** Of each text of a streamed answer, what waits for what follows. */
  readonly holdbackBytes: number;
  /** Of requests to a provider of the other API. */
  readonly leaveOut: readonly Hint[];
  readonly routes: readonly ModelRoute[];
}

export interface PackConfig {
  /** Absolute path of the pack's folder. */
  readonly path: string;
  readonly mode: Mode;
  readonly settings: JsonObject;
  /** Globs of rules that are only recorded. */
  readonly shadowRules: readonly string[];
}

interface PluginConfig {
  /** Absolute path of the plugin's folder. */
  readonly path: string;
  readonly mode: Mode;
  readonly phases: readonly Phase[];
  /** What each of its findings taints the session with. */
  readonly taints: readonly string[];
  readonly settings: JsonObject;
}

interface PolicyConfig {
  readonly packs: readonly PackConfig[];
  readonly plugins: readonly PluginConfig[];
  readonly pluginWorkers: number;
  /** The decision about an action no policy speaks of. */
  readonly defaultDecision: Decision;
  readonly deadlineMs: number;
}

interface ExtensionConfig {
  /** What is not trusted is not loaded. Only with a trust policy. */
  readonly strict: boolean;
  /** Null: nothing is trusted. */
  readonly trustPolicy: TrustPolicy | null;
  /** What the trust policy was read from, absolute. */
  readonly trustFiles: readonly string[];
}

interface SessionConfig {
  /** Whose admins may stop every tenant. Null: nobody may. */
  readonly gatewayTenant: string | null;
  /** 0 reviews: no session is stopped for them. */
  readonly reviewFlood: { readonly reviews: number; readonly windowMs: number };
  /** A session at `killAt` is stopped, 0: none is; the score drains from there to nothing in `windowMs`. */
  readonly risk: { readonly killAt: number; readonly windowMs: number; readonly mode: Mode };
  /** `mode`: of manifests that name none. */
  readonly drift: { readonly mode: Mode; readonly decision: "review" | "block" };
  /** Base64 of Ed25519 keys whose references bind sessions of their tenant to tasks. */
  readonly taskSigners: readonly { readonly id: string; readonly tenant: string; readonly publicKey: string }[];
  /** Sessions in memory. */
  readonly maxActive: number;
  readonly forgetMs: number;
}

interface TicketConfig {
  /** At most `maxTtlSeconds`. */
  readonly defaultTtlSeconds: number;
  readonly maxTtlSeconds: number;
  /** Tickets of one tenant that have not expired. */
  readonly maxLive: number;
  readonly allowSelfIssue: boolean;
}

interface EvidenceConfig {
  /** False: of arguments and answers, nothing is kept but what proves them. */
  readonly storeValues: boolean;
  /** False: a session is known by its id alone. */
  readonly storeLabels: boolean;
  /** Globs over `<tool>:<member>`: values that are never kept. */
  readonly redactFields: readonly string[];
  readonly witnesses: readonly WitnessConfig[];
  /** 0: no heartbeats. */
  readonly checkpointHeartbeatMs: number;
}

export type WitnessConfig = WitnessSpec & {
  /** By name of a header: all come from the environment. */
  readonly origins: Readonly<Record<string, ValueOrigin>>;
};

interface ApprovalConfig {
  /** Time to review, then to use. */
  readonly reviewMs: number;
  readonly useMs: number;
  /** Pending and approved, per tenant. */
  readonly maxLive: number;
  /** Held actions of a tenant together. */
  readonly maxHeldBytes: number;
  readonly allowSelfReview: boolean;
  readonly allowBreakGlass: boolean;
  /** 0: a held call is answered at once. */
  readonly holdMs: number;
  /** `{id}` stands for the approval's id; null: clients are sent nowhere. */
  readonly reviewUrl: string | null;
  readonly webhooks: readonly WebhookConfig[];
}

export type WebhookConfig = WebhookSpec & {
  /** Where its secrets come from, in their order. */
  readonly secretVariables: readonly string[];
};

interface ResilienceConfig {
  /** Only where the state is on disk. */
  readonly enabled: boolean;
  /** Whose backups they are, whatever tenants they hold; null: nobody's. */
  readonly tenant: string | null;
  readonly backupDir: string;
  /** Complete backups that stay. */
  readonly keep: number;
}

export type TelemetryConfig = TelemetryTarget & {
  /** Only where there is an endpoint. */
  readonly exemplars: boolean;
  /** By name of a header: all come from the environment. */
  readonly origins: Readonly<Record<string, ValueOrigin>>;
};

interface LimitConfig {
  readonly bodyBytes: number;
  readonly jsonDepth: number;
  readonly jsonNodes: number;
  /** UTF-16 code units of one string. */
  readonly jsonStringLength: number;
  readonly upstreamReplyBytes: number;
  readonly headersMs: number;
  readonly bodyMs: number;
  readonly keepAliveMs: number;
  readonly unreadMs: number;
  readonly maxConnections: number;
  readonly maxWebsockets: number;
  /** Of one key. */
  readonly adminRequestsPerMinute: number;
  /** Of one address, without a good key. */
  readonly adminStrangersPerMinute: number;
  readonly drainMs: number;
}

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Where the value of one upstream header or variable came from: the file itself, or the named environment variable. */
export type ValueOrigin = "file" | { readonly variable: string };

/** An upstream as the fleet takes it, and where its values came from. */
export type UpstreamConfig = UpstreamSpec & {
  /** By name of a header or variable. A value without an origin counts as a secret. */
  readonly origins?: Readonly<Record<string, ValueOrigin>>;
};
