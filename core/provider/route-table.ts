import { createHash } from "node:crypto";
import { GatewayError } from "../kernel/error.ts";
import type { ModelRoute, RouteStep } from "../kernel/provider-config.ts";
import { didYouMean } from "../kernel/suggestion.ts";

/** Which providers serve which model. What no route names is never asked. */
export class RouteTable {
  readonly #routes: ReadonlyMap<string, ModelRoute>;

  constructor(routes: readonly ModelRoute[]) {
    this.#routes = new Map(routes.map((route) => [route.model, route]));
  }

  /** The models that clients may ask for, in the order of the configuration. */
  get models(): readonly string[] {
    return [...this.#routes.keys()];
  }

  /**
   * Who serves the model for this session, in order; one alone unless the route allows fallback. The same session is
   * led the same way as long as the route stays as it is. Throws MODEL_UNKNOWN.
   */
  steps(model: string, session: string): readonly RouteStep[] {
    const route = this.#routes.get(model);
    if (route === undefined) {
      const shown = model.slice(0, longestShown);
      throw new GatewayError("MODEL_UNKNOWN", `got \`${shown}\`${didYouMean(model, this.#routes.keys())}`);
    }
    const ordered = canaryFirst(route, session) ?? byWeight(route, session);
    return route.fallback ? ordered : ordered.slice(0, 1);
  }
}

const longestShown = 256;

function canaryFirst(route: ModelRoute, session: string): readonly RouteStep[] | undefined {
  const { canary, model } = route;
  if (canary === null || lot("canary", model, session) * 100 >= canary.percent) return undefined;
  return [canary, ...byWeight(route, session)];
}

function byWeight({ model, steps }: ModelRoute, session: string): readonly RouteStep[] {
  const total = steps.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
  let left = lot("weight", model, session) * total;
  const chosen = steps.find(({ weight }) => {
    left -= weight ?? 0;
    return left < 0;
  });
  return chosen === undefined ? steps : [chosen, ...steps.filter((step) => step !== chosen)];
}

/** A number from 0 up to but not 1, always the same for the same words. */
function lot(...words: readonly string[]): number {
  const digest = createHash("sha256")
    .update(JSON.stringify(["model-route-v1", ...words]))
    .digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}
