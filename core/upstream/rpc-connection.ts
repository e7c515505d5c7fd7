import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import {
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type McpEra,
  metaKey,
  modernRevision,
  type RequestId,
} from "../action/json-rpc.ts";
import type {
  ConnectionListener,
  Exchange,
  OutgoingRequest,
  ServerDescription,
  UpstreamConnection,
} from "./connection.ts";
import { ServerRequests } from "./server-request.ts";
import { Flight, type FlightLimits, type FlightOwner, type McpTransport, type TransportListener } from "./transport.ts";

const maxInFlight = 1_024;
/** A connection that was used within this time is about to be used again. */
const spareMs = 1_000;

interface RpcOptions {
  readonly upstream: string;
  readonly transport: McpTransport;
  readonly clock: Clock;
  readonly limits: FlightLimits;
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly listener: ConnectionListener;
  /** Repeats the handshake, for a connection that outlives its upstream's session. */
  readonly renew?: (connection: RpcConnection) => Promise<void>;
}

/** JSON-RPC with one upstream over any transport: ids, deadlines, progress tokens, envelopes, cancellation. */
export class RpcConnection implements UpstreamConnection, TransportListener, FlightOwner {
  readonly upstream: string;
  readonly flights: Map<number, Flight> = new Map();
  /** Called once when the connection is over; `error` is absent where the gateway closed it. */
  onEnded: ((error: GatewayError | undefined) => void) | undefined;
  readonly #options: RpcOptions;
  readonly #envelope: JsonObject;
  readonly #serverRequests: ServerRequests;
  readonly #renewal: SessionRenewal | undefined;
  #server: ServerDescription | undefined;
  #lastId = 0;
  #lastUsedMs: number;
  #isEnded = false;

  constructor(options: RpcOptions) {
    this.upstream = options.upstream;
    this.#options = options;
    this.#lastUsedMs = options.clock();
    this.#envelope = modernEnvelope(options.clientInfo, options.capabilities);
    this.#serverRequests = new ServerRequests((response) => this.#post(response));
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

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Milliseconds since the last request began; 0 while one is in flight. */
  get idleMs(): number {
    return this.flights.size > 0 ? 0 : this.#options.clock() - this.#lastUsedMs;
  }

  /** True if it was not used within the last second, and nothing is in flight but the gateway's own subscription. */
  get isSpare(): boolean {
    if (this.#options.clock() - this.#lastUsedMs < spareMs) return false;
    for (const { request, exchange } of this.flights.values()) {
      if (request.method !== "subscriptions/listen" || exchange.signal !== undefined) return false;
    }
    return true;
  }

  /** The time at which the last request began, or the connection was last reserved for one. */
  get lastUsedMs(): number {
    return this.#lastUsedMs;
  }

  /** Reserves the connection for a request that is about to begin. */
  reserve(): void {
    this.#lastUsedMs = this.#options.clock();
  }

  /** Completes the handshake: from now on requests are written in the server's era. */
  begin(server: ServerDescription): void {
    this.#server = server;
    this.reserve();
    this.#options.transport.begin(
      server.revision,
      server.era === "legacy" && sendsUnsolicited(server, this.#options.capabilities),
    );
  }

  request(
    { method, params }: OutgoingRequest,
    exchange: Exchange = {},
    limits: FlightLimits = this.#options.limits,
  ): Promise<JsonRpcResponse> {
    const { clock, transport } = this.#options;
    if (this.#isEnded) return Promise.reject(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    if (exchange.signal?.aborted === true) return Promise.reject(exchange.signal.reason);
    if (this.flights.size >= maxInFlight) {
      return Promise.reject(new GatewayError("UPSTREAM_BUSY", `expected at most ${maxInFlight} requests in flight`));
    }
    const id = ++this.#lastId;
    // Before the handshake is done there is no era yet: the handshake writes its own envelope.
    const written =
      this.#server === undefined
        ? { params, progressToken: undefined }
        : writeParams(params, { era: this.#server.era, envelope: this.#envelope, exchange: exchange.meta, id });
    const flight = new Flight({
      request: { jsonrpc: "2.0", id, method, ...(written.params === undefined ? {} : { params: written.params }) },
      exchange,
      clock,
      timeoutMs: limits.timeoutMs,
      maxTimeoutMs: limits.maxTimeoutMs,
      progressToken: written.progressToken,
      owner: this,
    });
    this.#lastUsedMs = clock();
    const isHandshake = method === "initialize" || this.#server === undefined;
    if (this.#renewal?.running === undefined || isHandshake) transport.send(flight);
    else this.#renewal.resend(flight);
    return flight.response;
  }

  async notify({ method, params }: OutgoingRequest): Promise<void> {
    const sources = { envelope: this.#envelope, exchange: undefined, id: undefined };
    const written =
      this.#server === undefined ? params : writeParams(params, { ...sources, era: this.#server.era }).params;
    await this.#options.transport.post({
      jsonrpc: "2.0",
      method,
      ...(written === undefined ? {} : { params: written }),
    });
  }

  async close(): Promise<void> {
    this.#finish(undefined);
    await this.#options.transport.close();
  }

  onNotification(notification: JsonRpcNotification, own: Flight | undefined): void {
    const { method, params } = notification;
    if (method === "notifications/progress") this.#onProgress(notification);
    else if (method === "notifications/cancelled") this.#onServerCancelled(params?.requestId);
    else {
      const flight = own ?? this.#subscriptionOf(params);
      if (flight?.request.method === "subscriptions/listen") flight.liftDeadline();
      if (flight?.exchange.onNotification !== undefined) flight.exchange.onNotification(notification);
      else if (flight === undefined || !flight.isSettled)
        this.#options.listener.onNotification(this.upstream, notification);
    }
  }

  onRequest(request: JsonRpcRequest, own: Flight | undefined): void {
    if (this.#server?.era === "modern") return; // that revision has no such requests, and no responses to them
    if (request.method === "ping") {
      this.#post({ jsonrpc: "2.0", id: request.id, result: {} });
      return;
    }
    const handler = own?.exchange.onRequest;
    void this.#serverRequests.serve(request, (signal) =>
      handler === undefined
        ? this.#options.listener.onRequest(this.upstream, request, signal)
        : handler(request, signal),
    );
  }

  onSessionLost(flight: Flight | undefined, isCertain: boolean): boolean {
    const isRenewable = this.#renewal !== undefined && this.#server !== undefined;
    if (!isCertain && (!isRenewable || flight?.isResent === true)) return false;
    const error = new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream ended the session");
    if (!isRenewable) this.onClose(error);
    else if (flight?.isResent === true) flight.settle({ fault: error });
    else this.#renewal?.start(flight);
    return true;
  }

  onClose(error: GatewayError): void {
    if (this.#isEnded) return;
    this.#finish(error);
    void this.#options.transport.close();
    if (this.#server !== undefined) this.#options.listener.onClose(this.upstream, error.message);
  }

  /** Notifies the upstream, unless it is a modern one whose request stream is closed anyway. */
  onCancelled(flight: Flight, reason: string): void {
    const { id, method } = flight.request;
    if (method === "initialize" || this.#isEnded) return;
    if (this.#server?.era === "modern" && this.#options.transport.hasRequestStreams) return;
    this.#post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
  }

  #onProgress(notification: JsonRpcNotification): void {
    const token = notification.params?.progressToken;
    const flight = typeof token === "number" ? this.flights.get(token) : undefined;
    if (flight?.progressToken === undefined) return; // late, or of a request that wanted none
    flight.progress();
    flight.exchange.onNotification?.({
      ...notification,
      params: { ...notification.params, progressToken: flight.progressToken },
    });
  }

  #onServerCancelled(id: unknown): void {
    if (typeof id !== "string" && typeof id !== "number") return;
    if (this.#serverRequests.cancel(id as RequestId)) return;
    const flight = typeof id === "number" ? this.flights.get(id) : undefined;
    if (flight?.request.method !== "subscriptions/listen") return;
    flight.settle({ fault: new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream ended the subscription") });
  }

  #subscriptionOf(params: JsonObject | undefined): Flight | undefined {
    const meta = params?._meta;
    const id = isJsonObject(meta) ? meta[metaKey.subscriptionId] : undefined;
    return typeof id === "number" ? this.flights.get(id) : undefined;
  }

  /** Posts without waiting. A connection that cannot deliver a message reports its own end. */
  #post(message: JsonRpcNotification | JsonRpcResponse): void {
    this.#options.transport.post(message).catch(() => undefined);
  }

  #finish(error: GatewayError | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const reason = error ?? new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed");
    this.#serverRequests.cancelAll(reason);
    for (const flight of [...this.flights.values()]) flight.settle({ fault: reason });
    this.onEnded?.(error);
  }
}

/** True if a legacy server may send anything outside of responses. */
function sendsUnsolicited(server: ServerDescription, clientCapabilities: JsonObject): boolean {
  const { tools, prompts, resources, logging } = server.capabilities;
  const changes = [tools, prompts, resources].some(
    (area) => isJsonObject(area) && (area.listChanged === true || area.subscribe === true),
  );
  return changes || logging !== undefined || Object.keys(clientCapabilities).length > 0;
}

/** The members that the stateless revision requires in each request's `_meta`. */
export function modernEnvelope(clientInfo: JsonObject, capabilities: JsonObject): JsonObject {
  return {
    [metaKey.protocolVersion]: modernRevision,
    [metaKey.clientInfo]: clientInfo,
    [metaKey.clientCapabilities]: capabilities,
  };
}

const envelopeKeys: readonly string[] = [
  metaKey.protocolVersion,
  metaKey.clientInfo,
  metaKey.clientCapabilities,
  metaKey.logLevel,
];

interface MetaSources {
  readonly era: McpEra;
  /** The connection's own envelope; the caller's members take precedence over it, except for the revision. */
  readonly envelope: JsonObject;
  /** The exchange's `meta`, which steers how this call is answered. */
  readonly exchange: JsonObject | undefined;
  /** The request's id, which is also its progress token on the wire; undefined for a notification. */
  readonly id: number | undefined;
}

interface WrittenParams {
  readonly params: JsonObject | undefined;
  /** The progress token that the caller used, if any. */
  readonly progressToken: string | number | undefined;
}

/** Writes the params for the wire: the judged `_meta`, then the exchange's, in the words of the connection's era. */
function writeParams(params: JsonObject | undefined, { era, envelope, exchange, id }: MetaSources): WrittenParams {
  const judged = params?._meta;
  if (era === "legacy" && exchange === undefined && judged === undefined) return { params, progressToken: undefined };
  const judgedMeta = isJsonObject(judged) ? judged : {};
  const token = exchange?.progressToken ?? judgedMeta.progressToken;
  const progressToken = typeof token === "string" || typeof token === "number" ? token : undefined;
  const meta: Record<string, Json> = { ...exchange, ...judgedMeta };
  delete meta.progressToken;
  if (progressToken !== undefined && id !== undefined) meta.progressToken = id;
  if (era === "legacy") for (const key of envelopeKeys) delete meta[key];
  const full = era === "legacy" ? meta : { ...envelope, ...meta, [metaKey.protocolVersion]: modernRevision };
  if (Object.keys(full).length > 0) return { params: { ...params, _meta: full }, progressToken };
  if (judged === undefined) return { params, progressToken };
  const { _meta: _, ...rest } = params as JsonObject;
  return { params: rest, progressToken };
}

/** Repeats the handshake when the upstream lost the session, once for all requests that notice. */
class SessionRenewal {
  /** Pending while the handshake runs; requests wait for it, because without a session they would be refused. */
  running: Promise<void> | undefined;
  readonly #transport: McpTransport;
  readonly #handshake: () => Promise<void>;
  readonly #onFault: (error: unknown) => void;

  constructor(transport: McpTransport, handshake: () => Promise<void>, onFault: (error: unknown) => void) {
    this.#transport = transport;
    this.#handshake = handshake;
    this.#onFault = onFault;
  }

  /** Starts the handshake unless it is running; the flight that noticed is sent again after it. */
  start(flight: Flight | undefined): void {
    this.running ??= this.#renew();
    if (flight === undefined) return;
    flight.isResent = true;
    this.resend(flight);
  }

  /** Sends the flight's request when the session is renewed. */
  resend(flight: Flight): void {
    void this.running?.then(() => {
      if (!flight.isSettled) this.#transport.send(flight);
    });
  }

  async #renew(): Promise<void> {
    this.#transport.forgetSession();
    try {
      await this.#handshake();
    } catch (error) {
      this.#onFault(error);
    } finally {
      this.running = undefined;
    }
  }
}
