import type { ProviderHealth } from "./exchange.ts";

/** A provider as operators read it: its health, and the models that are routed to it. */
export interface ProviderView
  extends Pick<ProviderHealth, "name" | "type" | "enabled" | "models" | "routes" | "breaker" | "failures"> {
  /** Time until the next request is let through; 0 unless the circuit is open. */
  readonly rests_for_ms: number;
  readonly requests_in_flight: number;
  /** The fault of the last attempt; null where it succeeded. */
  readonly last_fault: ProviderHealth["lastFault"];
}

export function showProvider(health: ProviderHealth): ProviderView {
  return {
    name: health.name,
    type: health.type,
    enabled: health.enabled,
    models: health.models,
    routes: health.routes,
    breaker: health.breaker,
    failures: health.failures,
    rests_for_ms: health.restsForMs,
    requests_in_flight: health.requestsInFlight,
    last_fault: health.lastFault,
  };
}
