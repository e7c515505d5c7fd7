import { Type } from "../config/type.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import { anyText, enumOf, jsonResponse, nullable, whole, wholeNumber } from "../operation/shape.ts";
import type { ProviderFleet } from "./fleet.ts";
import { showProvider } from "./view.ts";

const provider = Type.Object({
  name: anyText,
  type: enumOf(["mock", "openai", "responses", "anthropic"]),
  enabled: Type.Boolean(),
  models: Type.Array(anyText),
  routes: Type.Array(anyText),
  breaker: enumOf(["closed", "open", "half_open"]),
  failures: wholeNumber,
  rests_for_ms: wholeNumber,
  requests_in_flight: wholeNumber,
  last_fault: nullable(anyText),
});

/** Model providers. */
export const providerOperations = {
  listProviders: {
    id: "admin.providers",
    method: "GET",
    path: "/admin/v1/providers",
    access: "provider.read",
    tag: "traffic",
    summary: "List the model providers and their health",
    response: jsonResponse("The whole list.", whole(provider)),
    errors: [],
  },
} as const satisfies AdminOperations;

/** The handler of the list of providers. */
export function providerHandlers({
  providers,
}: {
  readonly providers: Pick<ProviderFleet, "health">;
}): AdminHandlers<typeof providerOperations> {
  return { listProviders: () => ({ items: providers.health().map(showProvider), next: null }) };
}
