import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import type { JsonRpcNotification, JsonRpcResponse } from "../kernel/json-rpc.ts";
import { type McpEra, metaKey } from "../kernel/mcp.ts";
import type { Exchange, OutgoingRequest, ServerDescription, UpstreamConnection } from "./connection.ts";
import { adaptResponse } from "./translation.ts";
import { UriWatch } from "./uri-watch.ts";

const done: JsonRpcResponse = { jsonrpc: "2.0", id: 0, result: {} };

/**
 * A connection as a group of one era sees it. Where the upstream speaks the same era, requests pass untouched; where
 * not, results are translated, and what the stateless revision no longer has (log level, subscriptions) is done by
 * the means it has instead.
 */
export class ConnectionView implements UpstreamConnection {
  readonly upstream: string;
  readonly server: ServerDescription;
  readonly #inner: UpstreamConnection;
  readonly #era: McpEra;
  readonly #watch: UriWatch;
  #logLevel: Json | undefined;

  constructor(inner: UpstreamConnection, era: McpEra, deliver: (notification: JsonRpcNotification) => void) {
    this.upstream = inner.upstream;
    this.server = inner.server;
    this.#inner = inner;
    this.#era = era;
    this.#watch = new UriWatch(inner, deliver);
  }

  request(request: OutgoingRequest, exchange?: Exchange): Promise<JsonRpcResponse> {
    if (this.server.era === this.#era) return this.#inner.request(request, exchange);
    return this.#era === "legacy" ? this.#legacyRequest(request, exchange) : this.#adapted(request, exchange);
  }

  notify(notification: OutgoingRequest): Promise<void> {
    return this.#inner.notify(notification);
  }

  async close(): Promise<void> {
    this.#watch.stop();
    await this.#inner.close();
  }

  async #legacyRequest(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const { method, params } = request;
    if (method === "logging/setLevel") {
      this.#logLevel = params?.level;
      return done;
    }
    if (method === "resources/subscribe" || method === "resources/unsubscribe") {
      const uri = params?.uri;
      if (typeof uri !== "string") return this.#adapted(request, exchange);
      await this.#watch.change(uri, method === "resources/subscribe");
      return done;
    }
    return this.#adapted(request, this.#logLevel === undefined ? exchange : withLogLevel(exchange, this.#logLevel));
  }

  async #adapted(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const response = await this.#inner.request(request, exchange);
    return adaptResponse(response, this.server.era, this.#era, request.method);
  }
}

function withLogLevel(exchange: Exchange | undefined, level: Json): Exchange {
  const meta: JsonObject = isJsonObject(exchange?.meta) ? exchange.meta : {};
  return { ...exchange, meta: { ...meta, [metaKey.logLevel]: level } };
}
