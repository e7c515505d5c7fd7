import type { GatewayConfig } from "./config/gateway-config.ts";
import { identity, jsonBounds } from "./instance.ts";
import type { Log } from "./observe/log.ts";
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
