import type { ProviderHealth } from "./exchange.ts";

/** A provider as operators read it: how it fares, and which models lead to it. */
export interface ProviderView
  extends Pick<ProviderHealth, "name" | "type" | "enabled" | "models" | "routes" | "breaker" | "failures"> {
  /** Until it is asked again; 0 unless it rests. */
  readonly rests_for_ms: number;
  readonly requests_in_flight: number;
  /** Why the last attempt failed; null where it did not. */
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
