import { Pool } from "undici";
import { GatewayError } from "../kernel/error.ts";
import type { ModelApi } from "../kernel/model-api.ts";
import { apiOf, type HttpProviderConfig } from "../kernel/provider-config.ts";
import type { Endpoint, Exchange, OutgoingRequest } from "./exchange.ts";
import { HttpExchange } from "./http-exchange.ts";

const connectMs = 10_000;
const paths: Readonly<Record<ModelApi, string>> = { chat: "/chat/completions", messages: "/v1/messages" };
const usualVersion = "2023-06-01";

/** The sockets to one provider. It follows no redirect and asks for no encoding. */
export class HttpEndpoint implements Endpoint {
  readonly api: ModelApi;
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  /** Given up or not: who is gone still waits in the pool until there is a connection, or none to be had. */
  readonly #mostQueued: number;
  #queued = 0;

  constructor(config: HttpProviderConfig) {
    this.api = apiOf(config.type);
    const url = new URL(config.baseUrl);
    this.#mostQueued = config.maxConnections * 2;
    this.#path = url.pathname.replace(/\/$/, "") + paths[this.api] + url.search;
    this.#headers = {
      "content-type": "application/json",
      "accept-encoding": "identity",
      ...ownHeaders(this.api, config),
    };
    this.#pool = new Pool(url.origin, {
      connections: config.maxConnections,
      bodyTimeout: 0,
      headersTimeout: 0,
      connect: { timeout: connectMs },
    });
  }

  send({ body, stream, headers }: OutgoingRequest): Exchange {
    const exchange = new HttpExchange(() => {
      this.#queued--;
    });
    if (this.#queued >= this.#mostQueued) {
      exchange.fail(new GatewayError("PROVIDER_UNAVAILABLE", "too many requests wait for a connection"));
      return exchange;
    }
    this.#queued++;
    const accept = stream ? "text/event-stream" : "application/json";
    // Whatever goes wrong, a closed pool included, the exchange is told.
    this.#pool.dispatch(
      { path: this.#path, method: "POST", headers: { ...this.#headers, accept, ...headers }, body },
      exchange,
    );
    return exchange;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function ownHeaders(api: ModelApi, { apiKey }: HttpProviderConfig): Readonly<Record<string, string>> {
  if (api === "chat") return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  return { "anthropic-version": usualVersion, ...(apiKey === null ? {} : { "x-api-key": apiKey }) };
}
