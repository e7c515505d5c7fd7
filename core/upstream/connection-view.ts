import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type JsonRpcNotification, type JsonRpcResponse, type McpEra, metaKey } from "../action/json-rpc.ts";
import type { Exchange, OutgoingRequest, ServerDescription, UpstreamConnection } from "./connection.ts";

const emptyResponse: JsonRpcResponse = { jsonrpc: "2.0", id: 0, result: {} };

/**
 * Returns the connection as a client of one era uses it: the same one where the upstream speaks that era. `deliver`
 * receives the updates of a legacy client's subscriptions.
 */
export function viewFor(
  era: McpEra,
  connection: UpstreamConnection,
  deliver: (notification: JsonRpcNotification) => void,
): UpstreamConnection {
  return connection.server.era === era ? connection : new OtherEraView(connection, era, deliver);
}

/**
 * A connection for a client of the other era: results are translated, and the legacy requests for log level and
 * subscriptions are mapped to their replacements in the stateless revision.
 */
class OtherEraView implements UpstreamConnection {
  readonly upstream: string;
  readonly server: ServerDescription;
  readonly #inner: UpstreamConnection;
  readonly #era: McpEra;
  readonly #subscriptions: UriSubscriptions;
  #logLevel: Json | undefined;

  constructor(inner: UpstreamConnection, era: McpEra, deliver: (notification: JsonRpcNotification) => void) {
    this.upstream = inner.upstream;
    this.server = inner.server;
    this.#inner = inner;
    this.#era = era;
    this.#subscriptions = new UriSubscriptions(inner, deliver);
  }

  request(request: OutgoingRequest, exchange?: Exchange): Promise<JsonRpcResponse> {
    return this.#era === "legacy" ? this.#legacyRequest(request, exchange) : this.#translatedRequest(request, exchange);
  }

  notify(notification: OutgoingRequest): Promise<void> {
    return this.#inner.notify(notification);
  }

  async close(): Promise<void> {
    this.#subscriptions.stop();
    await this.#inner.close();
  }

  async #legacyRequest(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const { method, params } = request;
    if (method === "logging/setLevel") {
      this.#logLevel = params?.level;
      return emptyResponse;
    }
    if (method === "resources/subscribe" || method === "resources/unsubscribe") {
      const uri = params?.uri;
      if (typeof uri !== "string") return this.#translatedRequest(request, exchange);
      await this.#subscriptions.change(uri, method === "resources/subscribe");
      return emptyResponse;
    }
    return this.#translatedRequest(
      request,
      this.#logLevel === undefined ? exchange : withLogLevel(exchange, this.#logLevel),
    );
  }

  async #translatedRequest(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const response = await this.#inner.request(request, exchange);
    return adaptResponse(response, this.server.era, this.#era, request.method);
  }
}

function withLogLevel(exchange: Exchange | undefined, level: Json): Exchange {
  const meta: JsonObject = isJsonObject(exchange?.meta) ? exchange.meta : {};
  return { ...exchange, meta: { ...meta, [metaKey.logLevel]: level } };
}

const cacheable: ReadonlySet<string> = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

/**
 * Translates a result to the other era. In the stateless revision each result has a type, and some have a cache lifetime;
 * in the older ones there is neither. Throws CLIENT_CAPABILITY_MISSING for a result that requests input, which has no
 * legacy form.
 */
export function adaptResult(result: JsonObject, from: McpEra, to: McpEra, method: string): JsonObject {
  if (from === to) return result;
  if (to === "modern") {
    const cache = cacheable.has(method) ? { ttlMs: 0, cacheScope: "private" } : {};
    return { ...cache, ...result, resultType: "complete" };
  }
  const { resultType, ...rest } = result;
  if (resultType === "input_required") {
    throw new GatewayError(
      "CLIENT_CAPABILITY_MISSING",
      "the upstream asks for input, which needs a client of protocol revision 2026-07-28",
    );
  }
  if (!cacheable.has(method)) return rest;
  const { ttlMs: _ttl, cacheScope: _scope, ...legacy } = rest;
  return legacy;
}

/** Translates a response to the other era; errors are the same in both. */
function adaptResponse(response: JsonRpcResponse, from: McpEra, to: McpEra, method: string): JsonRpcResponse {
  if (from === to || !("result" in response)) return response;
  return { ...response, result: adaptResult(response.result, from, to, method) };
}

const maxUris = 1_000;

/** The resource subscriptions of a legacy client at a stateless upstream: one stream for all, reopened at each change. */
class UriSubscriptions {
  readonly #connection: UpstreamConnection;
  readonly #deliver: (notification: JsonRpcNotification) => void;
  readonly #uris: Set<string> = new Set();
  #stream: AbortController | undefined;

  constructor(connection: UpstreamConnection, deliver: (notification: JsonRpcNotification) => void) {
    this.#connection = connection;
    this.#deliver = deliver;
  }

  /**
   * Adds or removes a URI. Resolves when the upstream acknowledged the new set. Rejects with INVALID_PARAMS beyond 1,000
   * URIs, and with the request's own fault.
   */
  async change(uri: string, isWanted: boolean): Promise<void> {
    if (isWanted && this.#uris.size >= maxUris) {
      throw new GatewayError("INVALID_PARAMS", `expected at most ${maxUris} subscriptions`);
    }
    if (isWanted) this.#uris.add(uri);
    else this.#uris.delete(uri);
    const previous = this.#stream;
    this.#stream = undefined;
    try {
      if (this.#uris.size > 0) await this.#open();
    } finally {
      previous?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the subscription was replaced"));
    }
  }

  stop(): void {
    this.#stream?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    this.#stream = undefined;
  }

  #open(): Promise<void> {
    const stream = new AbortController();
    this.#stream = stream;
    return new Promise((resolve, reject) => {
      const params = { notifications: { resourceSubscriptions: [...this.#uris] } };
      const onNotification = (notification: JsonRpcNotification): void => {
        if (notification.method === "notifications/subscriptions/acknowledged") resolve();
        else if (notification.method === "notifications/resources/updated") this.#deliver(notification);
      };
      this.#connection
        .request({ method: "subscriptions/listen", params }, { signal: stream.signal, onNotification })
        .then((response) => {
          if ("result" in response) resolve();
          else
            reject(
              new GatewayError("UPSTREAM_INVALID", `a subscription was refused with error ${response.error.code}`),
            );
        }, reject);
    });
  }
}
