import type { JsonObject } from "../kernel/json.ts";
import type { ProviderHealth } from "../provider/event.ts";

/** A provider as operators read it: how it fares, and which models lead to it. */
export function showProvider(health: ProviderHealth): JsonObject {
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
