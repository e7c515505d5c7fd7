import { randomBytes } from "node:crypto";
import { AuthorizedAction } from "../kernel/authorized-action.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { ModelApi } from "../kernel/model-api.ts";
import type { Clock, Random } from "../kernel/port.ts";
import type { ModelRoute, ProviderConfig } from "../kernel/provider-config.ts";
import type { Hint } from "../kernel/request-hint.ts";
import type { RetryDelays } from "../kernel/retry.ts";
import type { ModelAnswer } from "./answer.ts";
import type { AnswerBounds } from "./attempt.ts";
import type { ProviderEventSink, ProviderHealth } from "./event.ts";
import type { Endpoint } from "./exchange.ts";
import { HttpEndpoint } from "./http-endpoint.ts";
import { MockEndpoint } from "./mock/endpoint.ts";
import { type Candidate, type ModelCall, makeRequest } from "./outgoing.ts";
import { Provider, type ProviderPorts } from "./provider.ts";
import { RouteTable } from "./route-table.ts";
import { translateRequest } from "./wire/translate.ts";

export interface ProviderFleetOptions {
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

const usualDelays: RetryDelays = { firstMs: 500, longestMs: 8_000 };

/** What a client asks for, in its own API. */
export interface CandidateRequest {
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
