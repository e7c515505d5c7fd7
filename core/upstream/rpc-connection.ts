import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type JsonObject } from "../action/json.ts";
import {
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  metaKey,
  type RequestId,
} from "../action/json-rpc.ts";
import type {
  ConnectionListener,
  Exchange,
  OutgoingRequest,
  ServerDescription,
  UpstreamConnection,
} from "./connection.ts";
import type { Transport, TransportListener } from "./duplex-transport.ts";
import { Flight, type FlightLimits } from "./flight.ts";
import { modernEnvelope, progressTokenOf, wireParams } from "./handshake.ts";

const maxInFlight = 1_024;

interface RpcOptions {
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
    if (this.#flights.size >= maxInFlight) {
      return Promise.reject(new GatewayError("UPSTREAM_BUSY", `expected at most ${maxInFlight} requests in flight`));
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

const maxOpen = 64;

/** The requests an upstream has open with us: each answered once, a limited number at a time, and cancellable. */
class InboundRequests {
  readonly #open: Map<RequestId, AbortController> = new Map();
  readonly #answer: (response: JsonRpcResponse) => void;

  constructor(answer: (response: JsonRpcResponse) => void) {
    this.#answer = answer;
  }

  /** Hands a request to `handle` and its answer, with the request's own id, to the upstream. */
  async serve(request: JsonRpcRequest, handle: (signal: AbortSignal) => Promise<JsonRpcResponse>): Promise<void> {
    const { id } = request;
    if (this.#open.has(id) || this.#open.size >= maxOpen) {
      this.#answer(
        refusal(
          id,
          new GatewayError("INVALID_REQUEST", `expected at most ${maxOpen} open requests, each with its own id`),
        ),
      );
      return;
    }
    const controller = new AbortController();
    this.#open.set(id, controller);
    try {
      const response = await handle(controller.signal);
      if (!controller.signal.aborted) this.#answer({ ...response, id });
    } catch (error) {
      if (!controller.signal.aborted) this.#answer(refusal(id, GatewayError.from(error)));
    } finally {
      this.#open.delete(id);
    }
  }

  /** Returns whether there was such a request. A cancelled one is not answered. */
  cancel(id: RequestId): boolean {
    const controller = this.#open.get(id);
    controller?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream cancelled its request"));
    return controller !== undefined;
  }

  cancelAll(reason: GatewayError): void {
    for (const controller of this.#open.values()) controller.abort(reason);
  }
}

function refusal(id: RequestId, error: GatewayError): JsonRpcResponse {
  return { jsonrpc: "2.0", id, error: { code: error.row.jsonRpc, message: error.publicMessage } };
}

/** Does the handshake again when the upstream lost the session, once for all requests that find out. */
class SessionRenewal {
  readonly #transport: Transport;
  readonly #handshake: () => Promise<void>;
  readonly #onFault: (error: unknown) => void;
  #running: Promise<void> | undefined;

  constructor(transport: Transport, handshake: () => Promise<void>, onFault: (error: unknown) => void) {
    this.#transport = transport;
    this.#handshake = handshake;
    this.#onFault = onFault;
  }

  /** While it runs, requests wait: without a session they would be refused. */
  get running(): boolean {
    return this.#running !== undefined;
  }

  /** Starts, where it does not run yet; the flight that found out is sent again after it. */
  start(flight: Flight | undefined): void {
    this.#running ??= this.#run();
    if (flight === undefined) return;
    flight.resent = true;
    this.resend(flight);
  }

  /** Sends the flight's request when the session is there again. */
  resend(flight: Flight): void {
    void this.#running?.then(() => {
      if (!flight.settled) this.#transport.send(flight);
    });
  }

  async #run(): Promise<void> {
    this.#transport.forgetSession();
    try {
      await this.#handshake();
    } catch (error) {
      this.#onFault(error);
    } finally {
      this.#running = undefined;
    }
  }
}
