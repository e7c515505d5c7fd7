import { canonicalJson, contentDigest } from "../action/canonical-json.ts";
import type { Json, JsonObject } from "../action/json.ts";
import type {
  EngineConfig,
  GatewayConfig,
  ProviderConfig,
  TelemetryConfig,
  UpstreamConfig,
  ValueOrigin,
  WebhookConfig,
  WitnessConfig,
} from "./gateway-config.ts";

/**
 * `sha256:<hex>` of the configuration; equal for equal configurations.
 * A value from the environment counts by its variable's name, one of unknown origin by its own name alone:
 * nobody can test a guess at a secret against the digest.
 */
export function configDigest(config: GatewayConfig): string {
  const { source: _, ...document } = config;
  const { extensions, evidence, approvals, resilience } = config;
  const withoutSecrets = {
    ...document,
    console: consoleWithoutSecret(config.console),
    upstreams: config.upstreams.map(upstreamWithoutSecrets),
    providers: config.providers.map(providerWithoutKey),
    policy: { ...config.policy, engines: config.policy.engines.map(engineWithoutToken) },
    extensions: { strict: extensions.strict, trustPolicy: extensions.trustPolicy },
    evidence: { ...evidence, witnesses: evidence.witnesses.map(witnessWithoutHeaders) },
    approvals: { ...approvals, webhooks: approvals.webhooks.map(webhookWithoutSecrets) },
    // Where no backups are made, their settings mean nothing.
    resilience: resilience.enabled ? resilience : { enabled: false },
    telemetry: telemetryWithoutHeaders(config.telemetry),
    store: storeWithoutSecrets(config.store),
    // The variable stands for the URL.
    reports: config.reports === null ? null : { ...config.reports, url: null },
  };
  return contentDigest(canonicalJson(withoutSecrets as unknown as JsonObject));
}

type Origins = Readonly<Record<string, ValueOrigin>> | undefined;

function originOf(origins: Origins, name: string): ValueOrigin | undefined {
  return origins !== undefined && Object.hasOwn(origins, name) ? origins[name] : undefined;
}

/** Each header with the variable that it comes from, for places where all headers come from the environment. */
function headerVariables(headers: Readonly<Record<string, string>>, origins: Origins): Json {
  return Object.keys(headers).map((name) => {
    const origin = originOf(origins, name);
    return [name, origin === undefined || origin === "file" ? null : origin.variable];
  });
}

function witnessWithoutHeaders({ origins, ...witness }: WitnessConfig): object {
  if (witness.type !== "http") return witness;
  return { ...witness, headers: headerVariables(witness.headers, origins) };
}

/** Without an endpoint, the other settings mean nothing. */
function telemetryWithoutHeaders({ origins, headers, ...rest }: TelemetryConfig): object {
  return rest.endpoint === null ? { endpoint: null } : { ...rest, headers: headerVariables(headers, origins) };
}

/** Their variables stand for the secrets. Replicas have one configuration, each with its own host. */
function storeWithoutSecrets(store: GatewayConfig["store"]): object | null {
  return store === null ? null : { ...store, url: null, secret: null, host: null };
}

/** `secretVariable` stands for the secret. */
function consoleWithoutSecret({ oidc, ...console }: GatewayConfig["console"]): object {
  return { ...console, oidc: oidc === null ? null : { ...oidc, clientSecret: null } };
}

/** `secretVariables` stands for the secrets. */
function webhookWithoutSecrets({ secrets: _, ...webhook }: WebhookConfig): object {
  return webhook;
}

/** `tokenVariable` stands for the token. */
function engineWithoutToken({ token: _, ...engine }: EngineConfig): object {
  return engine;
}

/** `keyVariable` stands for the key. */
function providerWithoutKey(provider: ProviderConfig): object {
  return "apiKey" in provider ? { ...provider, apiKey: null } : provider;
}

function upstreamWithoutSecrets({ origins, ...upstream }: UpstreamConfig): object {
  const values = upstream.transport === "stdio" ? upstream.env : upstream.headers;
  const sourced = Object.entries(values).map(([name, value]): [string, Json] => {
    const origin = originOf(origins, name);
    if (origin === undefined) return [name, null];
    return [name, origin === "file" ? value : { variable: origin.variable }];
  });
  return { ...upstream, [upstream.transport === "stdio" ? "env" : "headers"]: Object.fromEntries(sourced) };
}
