import type { HttpProvider, MockProvider, ModelRoute } from "../kernel/provider-config.ts";
import type { ModelGatewayConfig, ProviderConfig } from "./gateway-config.ts";
import type { FileForm, ProviderForm, RouteForm } from "./schema.ts";

/** The part of `buildConfig` about model providers. `apiKey` is null where the provider has none. */
export function buildProvider(form: ProviderForm, apiKey: string | null | undefined): ProviderConfig {
  if (apiKey === undefined) throw new TypeError(`buildProvider: expected the key of \`${form.name}\``);
  return {
    ...buildEndpoint(form, apiKey),
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

function buildEndpoint(
  { name, type, base_url: baseUrl }: ProviderForm,
  apiKey: string | null,
): HttpProvider | MockProvider {
  if (type === "mock") return { type };
  if (baseUrl === null) throw new TypeError(`buildProvider: expected the address of \`${name}\``);
  return { type, baseUrl, apiKey };
}

export function buildModelGateway(form: FileForm["model_gateway"]): ModelGatewayConfig {
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
