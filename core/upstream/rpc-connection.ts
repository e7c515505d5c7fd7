import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, RequestId } from "../kernel/json-rpc.ts";
import { metaKey } from "../kernel/mcp.ts";
import type { Clock } from "../kernel/port.ts";
import type {
  ConnectionListener,
  Exchange,
  OutgoingRequest,
  ServerDescription,
  UpstreamConnection,
} from "./connection.ts";
import { Flight, type FlightLimits } from "./flight.ts";
import { InboundRequests } from "./inbound.ts";
import { modernEnvelope, progressTokenOf, wireParams } from "./request-meta.ts";
import { SessionRenewal } from "./session-renewal.ts";
import type { Transport, TransportListener } from "./transport.ts";

const mostInFlight = 1_024;

export interface RpcOptions {
  readonly upstream: string;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: FlightLimits;
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly listener: ConnectionListener;
  /** For a connection that outlives its upstream's session: does the handshake again. */
  readonly renew?: (connection: RpcConnection) => Promise<void>;
}

/** JSON-RPC with one upstream over any transport: ids, deadlines, progress tokens, envelopes, cancellation. */
export class RpcConnection implements UpstreamConnection, TransportListener {
  readonly upstream: string;
  /** Called once when the connection is over; `error` is absent where we closed it. */
  onEnded: ((error: GatewayError | undefined) => void) | undefined;
  readonly #options: RpcOptions;
  readonly #envelope: JsonObject;
  readonly #inbound: InboundRequests;
  readonly #flights: Map<number, Flight> = new Map();
  #server: ServerDescription | undefined;
  readonly #renewal: SessionRenewal | undefined;
  #lastId = 0;
  #lastUsedMs: number;
  #ended = false;

  constructor(options: RpcOptions) {
    this.upstream = options.upstream;
    this.#options = options;
    this.#lastUsedMs = options.clock();
    this.#envelope = modernEnvelope(options.clientInfo, options.capabilities);
    this.#inbound = new InboundRequests((response) => this.#post(response));
    const { renew, transport } = options;
    const onFault = (error: unknown): void => this.onClose(GatewayError.from(error));
    this.#renewal = renew === undefined ? undefined : new SessionRenewal(transport, () => renew(this), onFault);
    transport.listen(this);
  }

  /** Throws TypeError before the handshake is done. */
  get server(): ServerDescription {
    if (this.#server === undefined) throw new TypeError("server: the handshake is not done");
    return this.#server;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Milliseconds since the last request began; 0 while one is in flight. */
  get idleMs(): number {
    return this.#flights.size > 0 ? 0 : this.#options.clock() - this.#lastUsedMs;
  }

  /** The handshake is done; from now on requests speak the server's era. */
  begin(server: ServerDescription): void {
    this.#server = server;
    this.#options.transport.begin(
      server.revision,
      server.era === "legacy" && sendsOnItsOwn(server, this.#options.capabilities),
    );
  }

  request(request: OutgoingRequest, exchange: Exchange = {}): Promise<JsonRpcResponse> {
    return this.call(request, exchange, this.#options.limits);
  }

  /** A request with limits of its own. */
  call(request: OutgoingRequest, exchange: Exchange, limits: FlightLimits): Promise<JsonRpcResponse> {
    if (this.#ended) return Promise.reject(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    if (exchange.signal?.aborted === true) return Promise.reject(exchange.signal.reason);
    if (this.#flights.size >= mostInFlight) {
      return Promise.reject(new GatewayError("UPSTREAM_BUSY", `expected at most ${mostInFlight} requests in flight`));
    }
    const flight = this.#flight(request, exchange, limits);
    this.#lastUsedMs = this.#options.clock();
    this.#flights.set(flight.request.id as number, flight);
    const handshake = request.method === "initialize" || this.#server === undefined;
    if (this.#renewal?.running !== true || handshake) this.#options.transport.send(flight);
    else this.#renewal.resend(flight);
    return flight.answer;
  }

  async notify(notification: OutgoingRequest): Promise<void> {
    const { method } = notification;
    const params = this.#params(notification.params, undefined, undefined);
    await this.#options.transport.post({ jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) });
  }

  async close(): Promise<void> {
    this.#finish(undefined);
    await this.#options.transport.close();
  }

  onNotification(notification: JsonRpcNotification, own: Flight | undefined): void {
    const { method, params } = notification;
    if (method === "notifications/progress") this.#onProgress(notification);
    else if (method === "notifications/cancelled") this.#onCancelled(params?.requestId);
    else {
      const flight = own ?? this.#subscription(params);
      if (flight?.request.method === "subscriptions/listen") flight.liftDeadline();
      if (flight?.exchange.onNotification !== undefined) flight.exchange.onNotification(notification);
      else if (flight === undefined || !flight.settled)
        this.#options.listener.onNotification(this.upstream, notification);
    }
  }

  onRequest(request: JsonRpcRequest, own: Flight | undefined): void {
    if (this.#server?.era === "modern") return; // that revision has no such requests, and no answers to them
    if (request.method === "ping") {
      this.#post({ jsonrpc: "2.0", id: request.id, result: {} });
      return;
    }
    const handler = own?.exchange.onRequest;
    void this.#inbound.serve(request, (signal) =>
      handler === undefined
        ? this.#options.listener.onRequest(this.upstream, request, signal)
        : handler(request, signal),
    );
  }

  onSessionLost(flight: Flight | undefined, certain: boolean): boolean {
    const renewable = this.#renewal !== undefined && this.#server !== undefined;
    if (!certain && (!renewable || flight?.resent === true)) return false;
    const error = new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream ended the session");
    if (!renewable) this.onClose(error);
    else if (flight?.resent === true) flight.reject(error);
    else this.#renewal?.start(flight);
    return true;
  }

  onClose(error: GatewayError): void {
    if (this.#ended) return;
    this.#finish(error);
    void this.#options.transport.close();
    if (this.#server !== undefined) this.#options.listener.onClose(this.upstream, error.message);
  }

  #flight(request: OutgoingRequest, exchange: Exchange, limits: FlightLimits): Flight {
    const id = ++this.#lastId;
    const progressToken = progressTokenOf(request.params, exchange.meta);
    const params = this.#params(request.params, exchange.meta, progressToken === undefined ? undefined : id);
    const { method } = request;
    return new Flight({
      request: { jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) },
      exchange,
      clock: this.#options.clock,
      timeoutMs: limits.timeoutMs,
      maxTimeoutMs: limits.maxTimeoutMs,
      progressToken,
      onSettled: this.#onSettled,
      onCancel: this.#onCancel,
    });
  }

  #params(
    params: JsonObject | undefined,
    exchange: JsonObject | undefined,
    progressToken: number | undefined,
  ): JsonObject | undefined {
    // Before the handshake is done there is no era yet: the handshake writes its own envelope.
    if (this.#server === undefined) return params;
    return wireParams(params, { era: this.#server.era, envelope: this.#envelope, exchange, progressToken });
  }

  #onSettled = (flight: Flight): void => {
    this.#flights.delete(flight.request.id as number);
  };

  /** A legacy upstream is told; a modern one sees its stream close, or is told where there is none. */
  #onCancel = (flight: Flight, reason: string): void => {
    const { id, method } = flight.request;
    if (method === "initialize" || this.#ended) return;
    if (this.#server?.era === "modern" && this.#options.transport.hasRequestStreams) return;
    this.#post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
  };

  #onProgress(notification: JsonRpcNotification): void {
    const token = notification.params?.progressToken;
    const flight = typeof token === "number" ? this.#flights.get(token) : undefined;
    if (flight?.progressToken === undefined) return; // late, or of a request that asked for none
    flight.progress();
    flight.exchange.onNotification?.({
      ...notification,
      params: { ...notification.params, progressToken: flight.progressToken },
    });
  }

  #onCancelled(id: unknown): void {
    if (typeof id !== "string" && typeof id !== "number") return;
    if (this.#inbound.cancel(id as RequestId)) return;
    const flight = typeof id === "number" ? this.#flights.get(id) : undefined;
    if (flight?.request.method !== "subscriptions/listen") return;
    flight.reject(new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream ended the subscription"));
  }

  #subscription(params: JsonObject | undefined): Flight | undefined {
    const meta = params?._meta;
    const id = isJsonObject(meta) ? meta[metaKey.subscriptionId] : undefined;
    return typeof id === "number" ? this.#flights.get(id) : undefined;
  }

  /** Posts without waiting. A message that cannot be delivered means a connection that reports its own end. */
  #post(message: JsonRpcNotification | JsonRpcResponse): void {
    this.#options.transport.post(message).catch(() => undefined);
  }

  #finish(error: GatewayError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    const reason = error ?? new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed");
    this.#inbound.cancelAll(reason);
    for (const flight of [...this.#flights.values()]) flight.reject(reason);
    this.onEnded?.(error);
  }
}

/** Whether a legacy server has anything to say outside of answers. */
function sendsOnItsOwn(server: ServerDescription, clientCapabilities: JsonObject): boolean {
  const { tools, prompts, resources, logging } = server.capabilities;
  const changes = [tools, prompts, resources].some(
    (area) => isJsonObject(area) && (area.listChanged === true || area.subscribe === true),
  );
  return changes || logging !== undefined || Object.keys(clientCapabilities).length > 0;
}
