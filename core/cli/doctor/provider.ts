import { type Examine, ok, warn } from "./finding.ts";
import { examineHost } from "./reach.ts";

/** Whether each model provider that a route names can be connected to. Its key was read with the configuration. */
export const examineProviders: Examine = async ({ config: { providers, modelGateway } }) => {
  const steps = modelGateway.routes.flatMap((route) => [
    ...route.steps,
    ...(route.canary === null ? [] : [route.canary]),
  ]);
  const routed = new Set(steps.map(({ provider }) => provider));
  const asked = providers.filter(({ name }) => routed.has(name));
  if (asked.length === 0) return [ok("no route names one: models are not offered")];
  return Promise.all(
    asked.map(async (provider) =>
      provider.type === "mock"
        ? ok(`\`${provider.name}\` answers by itself`)
        : examineHost(provider.name, provider.baseUrl, warn),
    ),
  );
};
