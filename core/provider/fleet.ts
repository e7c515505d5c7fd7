import { createHash, randomBytes } from "node:crypto";
import { AuthorizedAction } from "../action/authorized-action.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import { isLarge, type JsonObject } from "../action/json.ts";
import { jsonInTurns } from "../action/json-pieces.ts";
import type { Hint, ModelApi, ModelPurpose } from "../action/model-api.ts";
import type { RetryDelays } from "../action/retry.ts";
import { didYouMean } from "../action/suggestion.ts";
import type { ModelRoute, ProviderConfig, RouteStep } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { turnsOf } from "../store/pace.ts";
import type { ResponseBounds } from "./attempt.ts";
import type { ModelResponse, ProviderEndpoint, ProviderEventSink, ProviderHealth } from "./exchange.ts";
import { HttpProviderEndpoint } from "./http-endpoint.ts";
import { MockProviderEndpoint } from "./mock/endpoint.ts";
import { type Candidate, type ModelCall, makeRequest } from "./outgoing.ts";
import { Provider, type ProviderPorts } from "./provider.ts";
import { translateRequest } from "./wire/translate.ts";

interface ProviderFleetOptions {
  readonly providers: readonly ProviderConfig[];
  readonly routes: readonly ModelRoute[];
  /** Hints that are dropped from a request where the provider's API has no equivalent. */
  readonly dropHints?: readonly Hint[];
  readonly bounds: ResponseBounds;
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  readonly random?: Random;
  readonly onEvent?: ProviderEventSink;
  /** Between attempts. */
  readonly delays?: RetryDelays;
  readonly egress: EgressGuard;
}

const defaultDelays: RetryDelays = { firstMs: 500, maxMs: 8_000 };

/** A client's request, in its own API. */
interface CandidateRequest {
  readonly api: ModelApi;
  readonly model: string;
  readonly body: JsonObject;
  /** Absent: an answer. */
  readonly purpose?: ModelPurpose;
}

/** All model providers that are enabled, and the routes to them. Owns every socket it opened. */
export class ProviderFleet {
  readonly #configs: readonly ProviderConfig[];
  readonly #routes: readonly ModelRoute[];
  readonly #table: ModelRouteTable;
  readonly #clock: Clock;
  readonly #dropHints: ReadonlySet<string>;
  /** Hints that were named in the log, by provider. */
  readonly #loggedHints = new Map<string, Set<string>>();
  readonly #onEvent: ProviderEventSink;
  readonly #providers: ReadonlyMap<string, Provider>;

  /** Throws TypeError for a route to a provider that is not enabled. */
  constructor(options: ProviderFleetOptions) {
    const {
      providers,
      routes,
      egress,
      random = randomBytes,
      onEvent = () => undefined,
      delays = defaultDelays,
    } = options;
    const ports: ProviderPorts = { ...options, random, onEvent, delays };
    this.#configs = providers;
    this.#routes = routes;
    this.#table = new ModelRouteTable(routes);
    this.#clock = options.clock;
    this.#dropHints = new Set(options.dropHints);
    this.#onEvent = onEvent;
    const enabled = providers.filter((config) => config.enabled);
    this.#providers = new Map(
      enabled.map((config) => [config.name, new Provider(config, endpointOf(config, egress), ports)]),
    );
    for (const route of routes) for (const name of providersOf(route)) this.#provider(name);
  }

  /** The models that clients may request. */
  get models(): readonly string[] {
    return this.#table.models;
  }

  /**
   * Lists the providers for a request of this session, in order; those with an open circuit come last. Returns more than
   * one only where the route allows fallback, which a failed response permits with `mayFallBack`. Throws MODEL_UNKNOWN,
   * and MODEL_UNTRANSLATABLE where no provider's API can express it, so that no policy judges what cannot be sent.
   */
  candidates(request: CandidateRequest, session: string): readonly Candidate[] {
    const candidates = this.#table.steps(request.model, session).map((step) => this.#candidate(step));
    const able = translatable(candidates, request, this.#dropHints);
    const isAdmitting = ({ provider }: Candidate): boolean => this.#provider(provider).breaker.isAdmitting;
    return [...able.filter(isAdmitting), ...able.filter((candidate) => !isAdmitting(candidate))];
  }

  /** Throws MODEL_UNKNOWN for a model that no route serves. */
  checkModel(model: string): void {
    this.#table.steps(model, "");
  }

  /** Returns the first provider for a request of this session where its API counts tokens. Throws MODEL_UNKNOWN. */
  counter(model: string, session: string): Candidate | undefined {
    const [first] = this.#table.steps(model, session).map((step) => this.#candidate(step));
    return first?.api === "messages" ? first : undefined;
  }

  /**
   * Consumes the permission and sends the judged request, and nothing else, to the provider it was judged for, translated
   * to that provider's model name and API. Faults of the provider are in the response. Rejects with
   * MODEL_UNTRANSLATABLE, nothing sent, and with TypeError for a permission that is forged, spent, or for something else.
   */
  async call(permission: AuthorizedAction, call: ModelCall): Promise<ModelResponse> {
    const action = AuthorizedAction.spend(permission);
    const { candidate, api, purpose = "answer", stream, signal, pause } = call;
    const dropped = new Set<string>();
    const { body, ...request } = makeRequest(action, call, {
      created: Math.floor(this.#clock() / 1000),
      dropHints: this.#dropHints,
      onDropped: (hint) => dropped.add(hint),
    });
    this.#logHints(candidate.provider, dropped);
    return this.#provider(candidate.provider).request({
      ...request,
      body: isLarge(body) ? await jsonInTurns(body, turnsOf(pause)) : JSON.stringify(body),
      purpose,
      stream,
      clientApi: api,
      isApproved: permission.approvalId !== undefined,
      signal,
      pause,
    });
  }

  /** The health of all providers in the order of the configuration, including disabled ones. */
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

  /** Closes all connections and fails the requests in flight. */
  async close(): Promise<void> {
    await Promise.all([...this.#providers.values()].map((provider) => provider.close()));
  }

  /** Emits an event for the hints that were not dropped before a request to this provider. */
  #logHints(provider: string, dropped: ReadonlySet<string>): void {
    const logged = this.#loggedHints.get(provider) ?? new Set();
    const members = [...dropped].filter((hint) => !logged.has(hint));
    if (members.length === 0) return;
    this.#loggedHints.set(provider, new Set([...logged, ...members]));
    this.#onEvent({ kind: "request_hints_dropped", provider, members });
  }

  #candidate({ provider, model }: RouteStep): Candidate {
    return { provider, model, api: this.#provider(provider).api, target: `${provider}/${model}` };
  }

  #provider(name: string): Provider {
    const provider = this.#providers.get(name);
    if (provider === undefined) throw new TypeError(`ProviderFleet: no enabled provider \`${name}\``);
    return provider;
  }
}

function endpointOf(config: ProviderConfig, egress: EgressGuard): ProviderEndpoint {
  return config.type === "mock" ? new MockProviderEndpoint() : new HttpProviderEndpoint(config, egress);
}

function providersOf({ steps, canary }: ModelRoute): readonly string[] {
  return [...steps, ...(canary === null ? [] : [canary])].map(({ provider }) => provider);
}

function translatable(
  candidates: readonly Candidate[],
  { api, body, purpose }: CandidateRequest,
  dropHints: ReadonlySet<string>,
): readonly Candidate[] {
  const faults: unknown[] = [];
  const able = candidates.filter((candidate) => {
    try {
      if (purpose === "embed") checkEmbeds(candidate);
      translateRequest(api, candidate.api, body, dropHints);
      return true;
    } catch (cause) {
      faults.push(cause);
      return false;
    }
  });
  if (able.length === 0) throw faults[0];
  return able;
}

/** Throws MODEL_UNTRANSLATABLE for a provider whose API has no embeddings. */
function checkEmbeds({ api, provider }: Candidate): void {
  if (api === "chat") return;
  throw new GatewayError(
    "MODEL_UNTRANSLATABLE",
    `\`${provider}\` has no embeddings: ask for a model that a provider of type \`openai\` serves`,
    { data: { param: "model" } },
  );
}

/** The providers of each model. A provider that no route names is never called. */
export class ModelRouteTable {
  readonly #routes: ReadonlyMap<string, ModelRoute>;

  constructor(routes: readonly ModelRoute[]) {
    this.#routes = new Map(routes.map((route) => [route.model, route]));
  }

  /** The models that clients may request, in the order of the configuration. */
  get models(): readonly string[] {
    return [...this.#routes.keys()];
  }

  /**
   * Lists the providers of the model for this session, in order; only one unless the route allows fallback. The same
   * session is routed the same way as long as the route does not change. Throws MODEL_UNKNOWN.
   */
  steps(model: string, session: string): readonly RouteStep[] {
    const route = this.#routes.get(model);
    if (route === undefined) {
      const quoted = model.slice(0, maxQuotedLength);
      throw new GatewayError("MODEL_UNKNOWN", `got \`${quoted}\`${didYouMean(model, this.#routes.keys())}`);
    }
    const ordered = canaryFirst(route, session) ?? byWeight(route, session);
    return route.fallback ? ordered : ordered.slice(0, 1);
  }
}

const maxQuotedLength = 256;

function canaryFirst(route: ModelRoute, session: string): readonly RouteStep[] | undefined {
  const { canary, model } = route;
  if (canary === null || hashToFraction("canary", model, session) * 100 >= canary.percent) return undefined;
  return [canary, ...byWeight(route, session)];
}

function byWeight({ model, steps }: ModelRoute, session: string): readonly RouteStep[] {
  const total = steps.reduce((sum, { weight }) => sum + (weight ?? 0), 0);
  let left = hashToFraction("weight", model, session) * total;
  const chosen = steps.find(({ weight }) => {
    left -= weight ?? 0;
    return left < 0;
  });
  return chosen === undefined ? steps : [chosen, ...steps.filter((step) => step !== chosen)];
}

/** Hashes words to a number in [0, 1), so that a session keeps its route. */
function hashToFraction(...words: readonly string[]): number {
  const digest = createHash("sha256")
    .update(JSON.stringify(["model-route-v1", ...words]))
    .digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}
