import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import type { Json, JsonObject } from "../action/json.ts";
import type {
  GatewayConfig,
  ProviderConfig,
  TelemetryConfig,
  UpstreamConfig,
  ValueOrigin,
  WebhookConfig,
  WitnessConfig,
} from "./gateway-config.ts";
import type { ModelRoute } from "./peer-config.ts";
import type { TrustedSigner } from "./trust-policy.ts";

/**
 * `sha256:<hex>` of what the configuration says; equal for equal configurations.
 * A value from the environment counts by its variable's name, one of unknown origin by its own name alone:
 * nobody can test a guess at a secret against the digest.
 */
export function configDigest(config: GatewayConfig): string {
  const { dataDir, state, upstreams } = config;
  const document = {
    listen: { ...config.listen },
    dataDir,
    state,
    keys: config.keys.map((key) => ({ ...key })),
    mcpGateway: { ...config.mcpGateway },
    upstreams: upstreams.map(withoutSecrets),
    providers: config.providers.map(withoutKey),
    modelGateway: { ...config.modelGateway, routes: config.modelGateway.routes.map(routeOf) },
    usage: { ...config.usage, budgets: config.usage.budgets.map((budget) => ({ ...budget })) },
    policy: {
      ...config.policy,
      packs: config.policy.packs.map((pack) => ({ ...pack })),
      plugins: config.policy.plugins.map((plugin) => ({ ...plugin })),
    },
    extensions: { strict: config.extensions.strict, trustPolicy: trustOf(config) },
    sessions: {
      ...config.sessions,
      reviewFlood: { ...config.sessions.reviewFlood },
      risk: { ...config.sessions.risk },
      drift: { ...config.sessions.drift },
      taskSigners: config.sessions.taskSigners.map((signer) => ({ ...signer })),
    },
    tickets: { ...config.tickets },
    evidence: { ...config.evidence, witnesses: config.evidence.witnesses.map(withoutHeaders) },
    approvals: { ...config.approvals, webhooks: config.approvals.webhooks.map(withoutKeys) },
    // Where no backups are made, it says nothing where they would be.
    resilience: config.resilience.enabled ? { ...config.resilience } : { enabled: false },
    telemetry: telemetryOf(config.telemetry),
    limits: { ...config.limits },
    log: config.log,
  };
  return contentDigest(canonicalJson(document));
}

function trustOf({ extensions: { trustPolicy: policy } }: GatewayConfig): Json {
  if (policy === null) return null;
  const { allOf, anyOf, revoked, trustedRoot } = policy;
  const any = anyOf === null ? null : { minimum: anyOf.minimum, signers: anyOf.signers.map(signerOf) };
  return { allOf: allOf.map(signerOf), anyOf: any, revoked: { ...revoked }, trustedRoot };
}

function signerOf({ key, identity, ...rest }: TrustedSigner): Json {
  const named = identity === null ? null : { issuer: identity.issuer, subject: { ...identity.subject } };
  return { ...rest, key: key === null ? null : { ...key }, identity: named };
}

/** All headers of a witness come from the environment. */
function withoutHeaders({ origins, ...witness }: WitnessConfig): JsonObject {
  if (witness.type !== "http") return { ...witness };
  return { ...witness, headers: Object.keys(witness.headers).map((name) => [name, variableOf(origins[name])]) };
}

/** Where nobody is told anything, it says nothing of how. */
function telemetryOf({ origins, headers, ...rest }: TelemetryConfig): JsonObject {
  if (rest.endpoint === null) return { endpoint: null };
  return { ...rest, headers: Object.keys(headers).map((name) => [name, variableOf(origins[name])]) };
}

/** Secrets are told by the variables they come from. */
function withoutKeys({ secrets: _, ...webhook }: WebhookConfig): JsonObject {
  return { ...webhook };
}

/** Its key is told by the variable it comes from. */
function withoutKey(provider: ProviderConfig): JsonObject {
  const { breaker, ...rest } = provider;
  const told = { ...rest, breaker: { ...breaker } };
  return "apiKey" in told ? { ...told, apiKey: null } : told;
}

function routeOf({ canary, steps, ...route }: ModelRoute): JsonObject {
  return { ...route, steps: steps.map((step) => ({ ...step })), canary: canary === null ? null : { ...canary } };
}

function variableOf(origin: ValueOrigin | undefined): Json {
  return origin === undefined || origin === "file" ? null : origin.variable;
}

function withoutSecrets(upstream: UpstreamConfig): JsonObject {
  const { origins, ...rest } = upstream;
  const values = rest.transport === "stdio" ? rest.env : rest.headers;
  const told = Object.entries(values).map(([name, value]): [string, Json] => {
    const origin = origins !== undefined && Object.hasOwn(origins, name) ? origins[name] : undefined;
    if (origin === undefined) return [name, null];
    return [name, origin === "file" ? value : { variable: origin.variable }];
  });
  return { ...rest, [rest.transport === "stdio" ? "env" : "headers"]: Object.fromEntries(told) };
}
