import { type Examine, type Finding, ok, warn } from "./finding.ts";
import { hostOf, reachProblem } from "./reach.ts";

/** Whether each model provider that a route names can be connected to. Its key was read with the configuration. */
export const examineProviders: Examine = async ({ config: { providers, modelGateway } }) => {
  const routed = new Set(
    modelGateway.routes.flatMap(({ steps, canary }) =>
      [...steps, ...(canary === null ? [] : [canary])].map(({ provider }) => provider),
    ),
  );
  const asked = providers.filter(({ name }) => routed.has(name));
  if (asked.length === 0) return [ok("no route names one: models are not offered")];
  return Promise.all(
    asked.map(async (provider): Promise<Finding> => {
      const { name } = provider;
      if (provider.type === "mock") return ok(`\`${name}\` answers by itself`);
      const problem = await reachProblem(provider.baseUrl);
      if (problem === undefined) return ok(`\`${name}\` is there, at ${hostOf(provider.baseUrl)}`);
      return warn(
        `\`${name}\` at ${hostOf(provider.baseUrl)} cannot be reached: ${problem}`,
        "mend its `base_url`, or the way there",
      );
    }),
  );
};
