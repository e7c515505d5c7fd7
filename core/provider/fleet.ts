import { createHash, randomBytes } from "node:crypto";
import { AuthorizedAction } from "../action/authorized-action.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Hint, ModelApi } from "../action/model-api.ts";
import type { RetryDelays } from "../action/retry.ts";
import { didYouMean } from "../action/suggestion.ts";
import type { ModelRoute, ProviderConfig, RouteStep } from "../config/gateway-config.ts";
import type { AnswerBounds } from "./attempt.ts";
import type { Endpoint, ModelAnswer, ProviderEventSink, ProviderHealth } from "./exchange.ts";
import { HttpEndpoint } from "./http-endpoint.ts";
import { MockEndpoint } from "./mock/endpoint.ts";
import { type Candidate, type ModelCall, makeRequest } from "./outgoing.ts";
import { Provider, type ProviderPorts } from "./provider.ts";
import { translateRequest } from "./wire/translate.ts";

interface ProviderFleetOptions {
  readonly providers: readonly ProviderConfig[];
  readonly routes: readonly ModelRoute[];
  /** Members of a request that are left behind where a provider's API has no words for them. */
  readonly leftOut?: readonly Hint[];
  readonly bounds: AnswerBounds;
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  readonly random?: Random;
  readonly onEvent?: ProviderEventSink;
  /** Between attempts. */
  readonly delays?: RetryDelays;
}

const usualDelays: RetryDelays = { firstMs: 500, maxMs: 8_000 };

/** What a client asks for, in its own API. */
interface CandidateRequest {
  readonly api: ModelApi;
  readonly model: string;
  readonly body: JsonObject;
}

/** All model providers that are enabled, and the routes to them. Owns every socket it opened. */
export class ProviderFleet {
  readonly #configs: readonly ProviderConfig[];
  readonly #routes: readonly ModelRoute[];
  readonly #table: RouteTable;
  readonly #clock: Clock;
  readonly #leftOut: ReadonlySet<string>;
  readonly #providers: ReadonlyMap<string, Provider>;

  /** Throws TypeError for a route to a provider that is not enabled. */
  constructor(options: ProviderFleetOptions) {
    const { providers, routes, random = randomBytes, onEvent = () => undefined, delays = usualDelays } = options;
    const ports: ProviderPorts = { ...options, random, onEvent, delays };
    this.#configs = providers;
    this.#routes = routes;
    this.#table = new RouteTable(routes);
    this.#clock = options.clock;
    this.#leftOut = new Set(options.leftOut);
    const enabled = providers.filter((config) => config.enabled);
    this.#providers = new Map(enabled.map((config) => [config.name, new Provider(config, endpointOf(config), ports)]));
    for (const route of routes) for (const name of providersOf(route)) this.#provider(name);
  }

  /** The models that clients may ask for. */
  get models(): readonly string[] {
    return this.#table.models;
  }

  /** Throws MODEL_UNKNOWN for a model that no route serves. */
  checkModel(model: string): void {
    this.#table.steps(model, "");
  }

  /**
   * Who may serve a request of this session, in order; those that rest come last. More than one only where the route
   * allows fallback: the next may be asked where an answer says `elsewhere`. Throws MODEL_UNKNOWN, and
   * MODEL_UNTRANSLATABLE where no provider's API has words for it, so that nobody is asked to judge what cannot be sent.
   */
  candidates(request: CandidateRequest, session: string): readonly Candidate[] {
    const candidates = this.#table.steps(request.model, session).map((step) => ({
      ...step,
      api: this.#provider(step.provider).api,
      target: `${step.provider}/${step.model}`,
    }));
    const able = translatable(candidates, request, this.#leftOut);
    const admits = ({ provider }: Candidate): boolean => this.#provider(provider).breaker.admits;
    return [...able.filter(admits), ...able.filter((candidate) => !admits(candidate))];
  }

  /**
   * Spends the permission and sends the judged request to the provider it was judged for, in that provider's words for
   * model and API; nothing else goes there. What the provider does to it is in the answer. Rejects with
   * MODEL_UNTRANSLATABLE, nothing sent, and with TypeError for a permission that is forged, spent, or for something else.
   */
  async call(permission: AuthorizedAction, call: ModelCall): Promise<ModelAnswer> {
    const action = AuthorizedAction.spend(permission);
    const { candidate, api, stream, signal } = call;
    return this.#provider(candidate.provider).ask({
      ...makeRequest(action, call, { created: Math.floor(this.#clock() / 1000), leftOut: this.#leftOut }),
      stream,
      clientApi: api,
      approved: permission.approvalId !== undefined,
      signal,
    });
  }

  /** In the order of the configuration; those that are not enabled as well. */
  health(): readonly ProviderHealth[] {
    return this.#configs.map((config) => {
      const provider = this.#providers.get(config.name);
      const routes = this.#routes.filter((route) => providersOf(route).includes(config.name));
      return {
        name: config.name,
        type: config.type,
        enabled: config.enabled,
        models: config.models,
        routes: routes.map(({ model }) => model),
        breaker: provider?.breaker.state ?? "closed",
        failures: provider?.breaker.failures ?? 0,
        requestsInFlight: provider?.inFlight ?? 0,
        restsForMs: provider?.breaker.remainingMs ?? 0,
        lastFault: provider?.lastFault?.code ?? null,
      };
    });
  }

  /** Ends all connections, and what is under way on them. */
  async close(): Promise<void> {
    await Promise.all([...this.#providers.values()].map((provider) => provider.close()));
  }

  #provider(name: string): Provider {
    const provider = this.#providers.get(name);
    if (provider === undefined) throw new TypeError(`ProviderFleet: no enabled provider \`${name}\``);
    return provider;
  }
}

function endpointOf(config: ProviderConfig): Endpoint {
  return config.type === "mock" ? new MockEndpoint() : new HttpEndpoint(config);
}

function providersOf({ steps, canary }: ModelRoute): readonly string[] {
  return [...steps, ...(canary === null ? [] : [canary])].map(({ provider }) => provider);
}

function translatable(
  candidates: readonly Candidate[],
  { api, body }: CandidateRequest,
  leftOut: ReadonlySet<string>,
): readonly Candidate[] {
  const faults: unknown[] = [];
  const able = candidates.filter((candidate) => {
    try {
      translateRequest(api, candidate.api, body, leftOut);
      return true;
    } catch (cause) {
      faults.push(cause);
      return false;
    }
  });
  if (able.length === 0) throw faults[0];
  return able;
}

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
      const shown = model.slice(0, maxShown);
      throw new GatewayError("MODEL_UNKNOWN", `got \`${shown}\`${didYouMean(model, this.#routes.keys())}`);
    }
    const ordered = canaryFirst(route, session) ?? byWeight(route, session);
    return route.fallback ? ordered : ordered.slice(0, 1);
  }
}

const maxShown = 256;

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
