import { randomBytes } from "node:crypto";
import { noTracer } from "../action/trace.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { requireOptional } from "../config/optional-package.ts";
import { EgressGuard } from "../egress/egress-guard.ts";
import { limitWarnings } from "../observe/limited-warning.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Telemetry } from "../observe/otlp/telemetry.ts";
import { ProviderFleet } from "../provider/fleet.ts";
import { UpstreamFleet } from "../upstream/fleet.ts";
import { elapsedMs, identity, replyJsonBounds } from "./identity.ts";

/** The way out that every client of the gateway takes. */
export function openEgress({ egress }: GatewayConfig, log: Log): EgressGuard {
  const warn = limitWarnings((message, fields) => log.warn(fields, message));
  return new EgressGuard({ ...egress, onRefused: ({ message }) => warn("egress_refused", { reason: message }) });
}

/** The MCP servers that a configuration names. */
export function openFleet(config: GatewayConfig, log: Log, egress: EgressGuard): UpstreamFleet {
  return new UpstreamFleet({
    configs: config.upstreams,
    replyBounds: replyJsonBounds(config),
    replyBytes: config.limits.upstreamReplyBytes,
    shares: config.limits,
    egress,
    clock: elapsedMs,
    gatewayInfo: identity,
    onEvent: ({ kind, ...fields }) => log.info(fields, kind),
  });
}

/** The collector that it names. Without one nothing of OpenTelemetry is loaded. */
export async function openCollector(
  { telemetry, providers }: GatewayConfig,
  log: Log,
  metrics: Metrics,
  egress: EgressGuard,
): Promise<Telemetry> {
  const { endpoint } = telemetry;
  if (endpoint === null) return { tracer: noTracer, close: () => Promise.resolve() };
  requireOptional("telemetry", "`telemetry.endpoint`", "CONFIG_INVALID");
  const { openTelemetry } = await import("../observe/otlp/telemetry.ts");
  const warn = limitWarnings((message, fields) => log.warn(fields, message));
  return openTelemetry({
    target: { ...telemetry, endpoint },
    identity,
    providers: new Map(providers.map(({ name, type }) => [name, type])),
    metrics: metrics.telemetry,
    readMetrics: () => metrics.read(),
    egress,
    clock: Date.now,
    random: randomBytes,
    onFault: (fault) => warn("telemetry_export_failed", { fault }),
  });
}

/** The providers of models that it names. */
export function openProviders(config: GatewayConfig, log: Log, egress: EgressGuard): ProviderFleet {
  return new ProviderFleet({
    providers: config.providers,
    routes: config.modelGateway.routes,
    dropHints: config.modelGateway.dropHints,
    egress,
    bounds: { bytes: config.limits.upstreamReplyBytes, json: replyJsonBounds(config) },
    clock: Date.now,
    elapsedMs,
    onEvent: ({ kind, ...fields }) => log.info(fields, kind),
  });
}
