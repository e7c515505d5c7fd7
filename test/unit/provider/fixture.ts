import type { AuthorizedAction } from "../../../core/action/authorized-action.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { HttpProviderConfig, ModelRoute, ProviderConfig } from "../../../core/config/gateway-config.ts";
import type { FailedResponse, ModelResponse, ProviderEvent, WholeResponse } from "../../../core/provider/exchange.ts";
import { ProviderFleet } from "../../../core/provider/fleet.ts";
import type { Candidate } from "../../../core/provider/outgoing.ts";
import type { WireEvent } from "../../../core/provider/wire/event-reader.ts";
import { ModelProvider } from "../../fixture/model-provider.ts";
import { makeAction } from "../../support/action.ts";
import { egress } from "../../support/egress.ts";
import { permit } from "../../support/permission.ts";

export const providerKey = "sk-provider-key-0001";

/** What a test asks for; the rest is as usual. */
export interface Asked {
  readonly api?: ModelApi;
  readonly model?: string;
  readonly session?: string;
  readonly stream?: boolean;
  readonly body?: JsonObject;
  /** What the client says beside the body. */
  readonly continuation?: JsonObject;
  readonly signal?: AbortSignal;
  /** Whether an approval was used up for it. */
  readonly approved?: boolean;
  /** Which candidate; the first unless told otherwise. */
  readonly candidate?: number;
}

const limits = {
  enabled: true,
  models: ["m"],
  firstByteTimeoutMs: 2_000,
  idleTimeoutMs: 2_000,
  maxTimeoutMs: 10_000,
  maxRetries: 0,
  maxConnections: 64,
  breaker: { failures: 1_000, restMs: 60_000 },
};

/** A provider at this address; without retries, and with a breaker that stays closed. */
export function httpConfig(
  provider: ModelProvider,
  changed: Partial<HttpProviderConfig> & { readonly type?: HttpProviderConfig["type"] } = {},
): HttpProviderConfig {
  const type = changed.type ?? "openai";
  return { name: "p", type, baseUrl: provider.baseUrl(type), apiKey: providerKey, ...limits, ...changed };
}

export function mockConfig(changed: Partial<Omit<ProviderConfig, "type">> = {}): ProviderConfig {
  return { name: "mock", type: "mock", ...limits, ...changed };
}

/** The model `m`, from these providers in order. */
export function routeTo(names: readonly string[], changed: Partial<ModelRoute> = {}): ModelRoute {
  const steps = names.map((provider) => ({ provider, model: `${provider}-model`, weight: null }));
  return { model: "m", steps, fallback: false, canary: null, ...changed };
}

/** Providers, and a fleet in front of them. */
export class FleetWorld {
  readonly events: ProviderEvent[] = [];
  nowMs = 0;
  /** How often a request or its answer waited for a turn. */
  pauses = 0;
  readonly pause = async (): Promise<void> => void this.pauses++;
  #fleet: ProviderFleet | undefined;
  readonly #providers: ModelProvider[] = [];

  async provider(): Promise<ModelProvider> {
    const provider = await ModelProvider.start();
    this.#providers.push(provider);
    return provider;
  }

  open(providers: readonly ProviderConfig[], routes: readonly ModelRoute[] = [routeTo(providers.map(nameOf))]): void {
    this.#fleet = new ProviderFleet({
      providers,
      routes,
      egress,
      bounds: { bytes: 1_048_576, json: { depth: 64, nodes: 100_000, stringLength: 1_048_576, reader: "tolerant" } },
      clock: Date.now,
      elapsedMs: () => this.nowMs,
      random: () => Uint8Array.of(255),
      onEvent: (event) => this.events.push(event),
      delays: { firstMs: 10, maxMs: 1_000 },
    });
  }

  get fleet(): ProviderFleet {
    if (this.#fleet === undefined) throw new Error("expected open() before");
    return this.#fleet;
  }

  /** A permission for what is asked, from the gate's point of view. */
  permit({ api = "chat", model = "m", session = "s", ...asked }: Asked): AuthorizedAction {
    const candidate = this.candidate({ ...asked, api, model, session });
    const action = makeAction({
      protocol: "model",
      tool: api === "chat" ? "chat.completions" : "messages",
      target: candidate.target,
      capability: "generate",
      arguments: bodyOf(api, model, asked),
      ...(asked.continuation === undefined ? {} : { continuation: asked.continuation }),
    });
    return permit(action, asked.approved === true);
  }

  candidates({ api = "chat", model = "m", session = "s", ...asked }: Asked = {}): readonly Candidate[] {
    return this.fleet.candidates({ api, model, body: bodyOf(api, model, asked) }, session);
  }

  candidate(asked: Asked = {}): Candidate {
    const candidate = this.candidates(asked)[asked.candidate ?? 0];
    if (candidate === undefined) throw new Error("expected a candidate");
    return candidate;
  }

  async ask(asked: Asked = {}): Promise<ModelResponse> {
    const { api = "chat", stream = false } = asked;
    const candidate = this.candidate(asked);
    const signal = asked.signal ?? new AbortController().signal;
    return this.fleet.call(this.permit(asked), { candidate, api, stream, signal, pause: this.pause });
  }

  async whole(asked: Asked = {}): Promise<WholeResponse> {
    const answer = await this.ask(asked);
    if (answer.kind !== "whole") throw new Error(`expected a whole answer, got ${describeAnswer(answer)}`);
    return answer;
  }

  async failed(asked: Asked = {}): Promise<FailedResponse> {
    const answer = await this.ask(asked);
    if (answer.kind !== "failed") throw new Error(`expected a failure, got ${describeAnswer(answer)}`);
    return answer;
  }

  async stream(asked: Asked = {}): Promise<AsyncIterable<WireEvent>> {
    const answer = await this.ask({ ...asked, stream: true });
    if (answer.kind !== "stream") throw new Error(`expected a stream, got ${describeAnswer(answer)}`);
    return answer.events;
  }

  async close(): Promise<void> {
    await this.#fleet?.close();
    for (const provider of this.#providers) provider.stop();
  }
}

/** All bytes of a stream, and the error that ended it early. */
export async function drainStream(events: AsyncIterable<WireEvent>): Promise<{ text: string; error: unknown }> {
  let text = "";
  try {
    for await (const { raw } of events) text += Buffer.from(raw).toString("utf8");
    return { text, error: undefined };
  } catch (error) {
    return { text, error };
  }
}

export function contentOf(body: JsonObject): Json | undefined {
  const [choice] = body.choices as readonly { readonly message: JsonObject }[];
  return choice?.message.content;
}

function bodyOf(api: ModelApi, model: string, { stream = false, body = {} }: Asked): JsonObject {
  const messages = [{ role: "user", content: "Hi" }];
  return {
    model,
    messages,
    ...(api === "messages" ? { max_tokens: 100 } : {}),
    ...(stream ? { stream: true } : {}),
    ...body,
  };
}

function describeAnswer(answer: ModelResponse): string {
  return answer.kind === "failed" ? `${answer.status} ${answer.error.message}` : answer.kind;
}

function nameOf({ name }: ProviderConfig): string {
  return name;
}
