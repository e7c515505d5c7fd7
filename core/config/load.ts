import { dirname, resolve } from "node:path";
import { deepFreeze } from "../action/json.ts";
import { checkDocument } from "./check.ts";
import { readDocument } from "./document.ts";
import { FaultList } from "./fault.ts";
import {
  type FileForm,
  fileSchema,
  type ProviderForm,
  type RouteForm,
  type UpstreamForm,
  type WebhookForm,
  type WitnessForm,
} from "./file-schema.ts";
import type {
  GatewayConfig,
  KeyConfig,
  ModelGatewayConfig,
  ProviderConfig,
  TelemetryConfig,
  UpstreamConfig,
  WebhookConfig,
  WitnessConfig,
} from "./gateway-config.ts";
import type {
  HttpEndpoint,
  HttpProvider,
  MockProvider,
  ModelRoute,
  StdioEndpoint,
  UsageConfig,
  WitnessPlace,
} from "./peer-config.ts";
import { checkRules } from "./rule.ts";
import { readSecrets, type Secrets, type SourcedValues } from "./secret.ts";
import { loadTrustFile, type TrustFile } from "./trust-file.ts";

/**
 * Reads, checks and freezes one configuration file; secrets come from `env`.
 * Throws CONFIG_INVALID with every fault of the file, one `file:line:column: path: text` a line,
 * and as `data.faults`. No fault tells the value of a secret.
 */
export async function loadConfig(path: string, env: NodeJS.ProcessEnv): Promise<GatewayConfig> {
  const { form, secrets } = await readForm(path, env);
  const source = resolve(path);
  const { trust_policy: trust } = form.extensions;
  return buildConfig(
    form,
    secrets,
    source,
    trust === null ? null : await loadTrustFile(resolve(dirname(source), trust)),
  );
}

/** The checked file in its own spelling, and what the environment adds to it. Throws as `loadConfig` does. */
export async function readForm(path: string, env: NodeJS.ProcessEnv): Promise<{ form: FileForm; secrets: Secrets }> {
  const faults = new FaultList(path);
  const document = await readDocument(path, faults);
  if (document === undefined) return faults.throwAll();
  const draft = checkDocument(document, fileSchema, faults);
  const secrets = readSecrets(draft, env, faults);
  checkRules(draft, secrets, faults);
  faults.throwIfAny();
  // INVARIANT: without a fault the draft has no holes.
  return { form: draft as FileForm, secrets };
}

/** The configuration in this project's own spelling, deep-frozen. Relative paths start at the folder of `source`. */
export function buildConfig(form: FileForm, secrets: Secrets, source: string, trust: TrustFile | null): GatewayConfig {
  const folder = dirname(source);
  const { listen, mcp_gateway: mcp, approvals, evidence, limits, policy, resilience } = form;
  return deepFreeze<GatewayConfig>({
    source,
    listen: {
      host: listen.host,
      adminHost: listen.admin_host,
      gatewayPort: listen.gateway_port,
      adminPort: listen.admin_port,
      metricsPort: listen.metrics_port,
      allowedHosts: listen.allowed_hosts,
      allowedOrigins: listen.allowed_origins,
    },
    dataDir: resolve(folder, form.data_dir),
    state: { enabled: form.state.enabled },
    keys: form.keys.map((key, index) => buildKey(key, secrets.keyHashes[index])),
    mcpGateway: {
      requireAuth: mcp.require_auth,
      // A tenant left over from a trial without keys must not let anyone in.
      anonymousTenant: mcp.require_auth ? null : mcp.anonymous_tenant,
      metaPassthrough: mcp.meta_passthrough,
      maxSessions: mcp.max_sessions,
      sessionIdleMs: mcp.session_idle_ms,
    },
    upstreams: form.upstreams.map((upstream, index) => buildUpstream(upstream, secrets.upstreams[index], folder)),
    providers: form.providers.map((provider, index) => buildProvider(provider, secrets.providers[index])),
    modelGateway: buildModelGateway(form.model_gateway),
    usage: buildUsage(form.usage),
    policy: {
      packs: policy.packs.map(({ path, mode, settings, shadow_rules: shadowRules }) => {
        return { path: resolve(folder, path), mode, settings, shadowRules };
      }),
      plugins: policy.plugins.map(({ path, ...rest }) => ({ path: resolve(folder, path), ...rest })),
      defaultDecision: policy.default_decision,
      pluginWorkers: policy.plugin_workers,
      deadlineMs: policy.deadline_ms,
    },
    extensions: {
      strict: form.extensions.strict,
      trustPolicy: trust?.policy ?? null,
      trustFiles: trust?.files ?? [],
    },
    sessions: {
      gatewayTenant: form.sessions.gateway_tenant,
      reviewFlood: {
        reviews: form.sessions.review_flood.reviews,
        windowMs: form.sessions.review_flood.window_seconds * 1_000,
      },
      risk: {
        killAt: form.sessions.risk.kill_at,
        windowMs: form.sessions.risk.window_seconds * 1_000,
        mode: form.sessions.risk.mode,
      },
      drift: form.sessions.drift,
      taskSigners: form.sessions.task_signers.map(({ id, tenant, public_key: publicKey }) => ({
        id,
        tenant,
        publicKey,
      })),
      maxActive: form.sessions.max_active,
      forgetMs: form.sessions.forget_days * 86_400_000,
    },
    tickets: {
      defaultTtlSeconds: Math.min(form.tickets.default_ttl_seconds, form.tickets.max_ttl_seconds),
      maxTtlSeconds: form.tickets.max_ttl_seconds,
      maxLive: form.tickets.max_live,
      allowSelfIssue: form.tickets.allow_self_issue,
    },
    evidence: {
      storeValues: evidence.store_values,
      storeLabels: evidence.store_labels,
      redactFields: evidence.redact_fields,
      witnesses: evidence.witnesses.map((witness, index) => buildWitness(witness, secrets.witnesses[index], folder)),
      checkpointHeartbeatMs: evidence.checkpoint_heartbeat_ms,
    },
    approvals: {
      reviewMs: approvals.review_seconds * 1_000,
      useMs: approvals.use_seconds * 1_000,
      maxLive: approvals.max_pending,
      maxHeldBytes: approvals.max_held_bytes,
      allowSelfReview: approvals.allow_self_review,
      allowBreakGlass: approvals.allow_break_glass,
      holdMs: approvals.hold_seconds * 1_000,
      reviewUrl: approvals.review_url,
      webhooks: approvals.webhooks.map((webhook, index) => buildWebhook(webhook, secrets.webhooks[index])),
    },
    resilience: {
      enabled: resilience.enabled,
      tenant: resilience.tenant ?? onlyTenant(form.keys),
      backupDir: resolve(folder, resilience.backup_dir),
      keep: resilience.keep,
    },
    telemetry: buildTelemetry(form.telemetry, secrets.telemetry),
    limits: {
      bodyBytes: limits.body_bytes,
      jsonDepth: limits.json_depth,
      jsonNodes: limits.json_nodes,
      jsonStringLength: limits.json_string_length,
      upstreamReplyBytes: limits.upstream_reply_bytes,
      headersMs: limits.headers_ms,
      bodyMs: limits.body_ms,
      keepAliveMs: limits.keep_alive_ms,
      unreadMs: limits.unread_ms,
      maxConnections: limits.max_connections,
      maxWebsockets: limits.max_websockets,
      adminRequestsPerMinute: limits.admin_requests_per_minute,
      adminStrangersPerMinute: limits.admin_strangers_per_minute,
      drainMs: limits.drain_ms,
    },
    log: { level: form.log.level },
  });
}

/** The tenant that every key belongs to; null where there are several, or none. */
function onlyTenant(keys: FileForm["keys"]): string | null {
  const [tenant = null, ...others] = new Set(keys.map((key) => key.tenant));
  return others.length === 0 ? tenant : null;
}

function buildKey(key: FileForm["keys"][number], keyHash: string | undefined): KeyConfig {
  if (keyHash === undefined) throw new TypeError(`buildKey: expected a hash for \`${key.id}\``);
  return { id: key.id, tenant: key.tenant, role: key.role, keyHash };
}

function buildUpstream(form: UpstreamForm, sourced: SourcedValues | undefined, folder: string): UpstreamConfig {
  if (sourced === undefined) throw new TypeError(`buildUpstream: expected the values of \`${form.name}\``);
  return {
    ...buildEndpoint(form, sourced.values, folder),
    name: form.name,
    toolPrefix: form.tool_prefix,
    protocol: form.protocol,
    connection: form.connection,
    timeoutMs: form.timeout_ms,
    maxTimeoutMs: form.max_timeout_ms,
    startTimeoutMs: form.start_timeout_ms,
    maxConnections: form.max_connections,
    idleMs: form.idle_ms,
    capabilities: form.capabilities,
    trustAnnotations: form.trust_annotations,
    untrusted: form.untrusted,
    origins: sourced.origins,
  };
}

function buildEndpoint(
  form: UpstreamForm,
  values: Readonly<Record<string, string>>,
  folder: string,
): StdioEndpoint | HttpEndpoint {
  if (form.transport !== "stdio") return { transport: form.transport, url: form.url ?? absent("url"), headers: values };
  const command = form.command ?? absent("command");
  return {
    transport: "stdio",
    // A bare name is looked for in PATH; a path must not depend on where the gateway was started.
    command: command.includes("/") ? resolve(folder, command) : command,
    args: form.args ?? [],
    ...(form.cwd === null ? {} : { cwd: resolve(folder, form.cwd) }),
    env: values,
  };
}

function buildWitness(form: WitnessForm, sourced: SourcedValues | undefined, folder: string): WitnessConfig {
  if (sourced === undefined) throw new TypeError(`buildWitness: expected the headers of \`${form.name}\``);
  return {
    ...buildPlace(form, sourced, folder),
    name: form.name,
    intervalMs: form.interval_ms,
    origins: sourced.origins,
  };
}

function buildPlace(form: WitnessForm, { values }: SourcedValues, folder: string): WitnessPlace {
  switch (form.type) {
    case "file":
      return { type: "file", path: resolve(folder, form.path ?? absent("path")) };
    case "git":
      return { type: "git", repository: resolve(folder, form.repository ?? absent("repository")) };
    case "http":
      return { type: "http", url: form.url ?? absent("url"), headers: values };
  }
}

function buildWebhook(form: WebhookForm, secrets: readonly string[] = []): WebhookConfig {
  if (secrets.length === 0) throw new TypeError(`buildWebhook: expected a secret of \`${form.name}\``);
  return {
    name: form.name,
    tenant: form.tenant,
    url: form.url,
    secrets,
    secretVariables: form.secrets_env,
    events: form.events,
    timeoutMs: form.timeout_ms,
    maxAttempts: form.max_attempts,
  };
}

function absent(key: string): never {
  throw new TypeError(`buildConfig: expected \`${key}\`, which the schema requires`);
}

/** The part of `buildConfig` about model providers. `apiKey` is null where the provider has none. */
function buildProvider(form: ProviderForm, apiKey: string | null | undefined): ProviderConfig {
  if (apiKey === undefined) throw new TypeError(`buildProvider: expected the key of \`${form.name}\``);
  return {
    ...buildEndpointProvider(form, apiKey),
    keyVariable: form.api_key_env,
    name: form.name,
    enabled: form.enabled,
    models: form.models,
    firstByteTimeoutMs: form.first_byte_timeout_ms,
    idleTimeoutMs: form.idle_timeout_ms,
    maxTimeoutMs: form.max_timeout_ms,
    maxRetries: form.max_retries,
    maxConnections: form.max_connections,
    breaker: { failures: form.breaker.failures, restMs: form.breaker.rest_ms },
  };
}

function buildEndpointProvider(
  { name, type, base_url: baseUrl }: ProviderForm,
  apiKey: string | null,
): HttpProvider | MockProvider {
  if (type === "mock") return { type };
  if (baseUrl === null) throw new TypeError(`buildProvider: expected the address of \`${name}\``);
  return { type, baseUrl, apiKey };
}

function buildModelGateway(form: FileForm["model_gateway"]): ModelGatewayConfig {
  return {
    toolPassthrough: form.tool_passthrough,
    maxConcurrent: form.max_concurrent,
    holdbackBytes: form.holdback_bytes,
    leaveOut: form.leave_out,
    routes: form.routes.map(buildRoute),
  };
}

function buildRoute({ model, providers, fallback, canary }: RouteForm): ModelRoute {
  return {
    model,
    steps: providers.map((step) => ({ provider: step.name, model: step.model ?? model, weight: step.weight })),
    fallback,
    canary:
      canary.name === null ? null : { provider: canary.name, model: canary.model ?? model, percent: canary.percent },
  };
}

/** Where telemetry goes, with the headers that the environment holds. */
function buildTelemetry(form: FileForm["telemetry"], { values, origins }: SourcedValues): TelemetryConfig {
  return {
    endpoint: form.endpoint,
    protocol: form.protocol,
    headers: values,
    origins,
    timeoutMs: form.timeout_ms,
    samplePercent: form.sample_percent,
    maxQueuedSpans: form.max_queued_spans,
    metricsIntervalMs: form.metrics_interval_ms,
    exemplars: form.exemplars,
  };
}

/** The part of `buildConfig` about what may be asked of models. */
function buildUsage(form: FileForm["usage"]): UsageConfig {
  return {
    requestsPerMinute: form.requests_per_minute,
    tokensPerMinute: form.tokens_per_minute,
    budgets: form.budgets.map(({ tenant, key, tokens_per_day: tokensPerDay, tokens_per_month: tokensPerMonth }) => ({
      tenant,
      key,
      tokensPerDay,
      tokensPerMonth,
    })),
  };
}
