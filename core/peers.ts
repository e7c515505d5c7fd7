import { randomBytes } from "node:crypto";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { identity, jsonBounds } from "./instance.ts";
import { noTracer } from "./kernel/span.ts";
import { limitWarnings } from "./notify/limited-warning.ts";
import type { Log } from "./observe/log.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { Telemetry } from "./observe/otlp/telemetry.ts";
import { ProviderFleet } from "./provider/fleet.ts";
import { UpstreamFleet } from "./upstream/fleet.ts";

/** The MCP servers that a configuration names. */
export function openFleet(config: GatewayConfig, log: Log): UpstreamFleet {
  return new UpstreamFleet({
    configs: config.upstreams,
    replyBounds: { ...jsonBounds(config), reader: "tolerant" },
    replyBytes: config.limits.upstreamReplyBytes,
    clock: Date.now,
    gatewayInfo: identity,
    onEvent: (event) => log.info({ ...event }, "upstream"),
  });
}

/** The collector that it names. Without one nothing of OpenTelemetry is loaded. */
export async function openCollector(
  { telemetry, providers }: GatewayConfig,
  log: Log,
  metrics: Metrics,
): Promise<Telemetry> {
  const { endpoint } = telemetry;
  if (endpoint === null) return { tracer: noTracer, close: () => Promise.resolve() };
  const { openTelemetry } = await import("./observe/otlp/telemetry.ts");
  const warn = limitWarnings((message, fields) => log.warn(fields, message));
  return openTelemetry({
    target: { ...telemetry, endpoint },
    identity,
    providers: new Map(providers.map(({ name, type }) => [name, type])),
    metrics: metrics.telemetry,
    readMetrics: () => metrics.read(),
    clock: Date.now,
    random: randomBytes,
    onFault: (fault) => warn("the collector did not take telemetry", { fault }),
  });
}

/** The providers of models that it names. */
export function openProviders(config: GatewayConfig, log: Log): ProviderFleet {
  return new ProviderFleet({
    providers: config.providers,
    routes: config.modelGateway.routes,
    leftOut: config.modelGateway.leaveOut,
    bounds: { bytes: config.limits.upstreamReplyBytes, json: { ...jsonBounds(config), reader: "tolerant" } },
    clock: Date.now,
    elapsedMs: () => performance.now(),
    onEvent: (event) => log.info({ ...event }, "provider"),
  });
}
