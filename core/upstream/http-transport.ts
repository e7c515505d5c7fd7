import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isLarge, type Json } from "../action/json.ts";
import { jsonInTurns } from "../action/json-pieces.ts";
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcResponse } from "../action/json-rpc.ts";
import { type JsonData, longText } from "../action/strict-json.ts";
import type { Turns } from "../action/turns.ts";
import { turnsOf } from "../store/pace.ts";
import { type CallListener, HttpCall, type HttpClient, mediaType, statusError } from "./http-client.ts";
import { mirrorHeaders, type ParamHeader } from "./mcp-header.ts";
import { MessageReader } from "./message-reader.ts";
import { ServerStream } from "./server-stream.ts";
import { eventId, isMessage, type SseEvent, SseReader } from "./sse-reader.ts";
import {
  type Flight,
  FloodGate,
  type McpTransport,
  misdirected,
  type ReplyBounds,
  readReply,
  type TransportListener,
} from "./transport.ts";

/** The part of a refusal's body that is read. */
const maxErrorBytes = 65_536;
const deleteGraceMs = 1_000;
/** The time an answered stream may take to end, so that its socket can be reused. */
const lingerMs = 1_000;
const sessionPattern = /^[\x21-\x7e]{1,1024}$/;

interface HttpTransportOptions {
  readonly client: HttpClient;
  readonly bounds: ReplyBounds;
  readonly clock: Clock;
  readonly paramHeaders: (tool: string) => readonly ParamHeader[];
}

/** Streamable HTTP: a POST for each message, its response as JSON or as an event stream, and a GET stream for the rest. */
export class HttpTransport implements McpTransport {
  readonly hasRequestStreams = true;
  readonly #options: HttpTransportOptions;
  #listener!: TransportListener;
  #session: string | undefined;
  #headers: readonly string[];
  /** For messages that do not name their revision themselves. */
  #revisionHeader: readonly string[] = [];
  #stream: ServerStream | undefined;
  #ending: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    this.#headers = this.#baseHeaders();
  }

  listen(listener: TransportListener): void {
    this.#listener = listener;
  }

  send(flight: Flight): void {
    const { client, bounds, clock, paramHeaders } = this.#options;
    const session = this.#session;
    const stream = new RequestStream(flight, bounds, clock, {
      onMessage: (message) => this.#onSideMessage(message, flight),
      onInitialized: (headers) => this.#keepSession(headers),
      onUnserved: (isCertain) => this.#onUnserved(session, flight, isCertain),
      resume: (lastEventId, call) => this.#get(lastEventId, call),
    });
    // Only messages of the stateless revision are repeated in headers, and all of those have `_meta`.
    const mirrored = flight.request.params?._meta === undefined ? [] : mirrorHeaders(flight.request, paramHeaders);
    const headers = [...this.#headers, ...(mirrored.length > 0 ? mirrored : this.#revisionHeader)];
    if (flight.exchange.traceparent !== undefined) headers.push("traceparent", flight.exchange.traceparent);
    const { pause } = flight.exchange;
    if (pause !== undefined && isLarge(flight.request as unknown as Json)) {
      void this.#sendLarge(flight.request as unknown as Json, headers, stream.call, turnsOf(pause));
    } else client.send({ method: "POST", headers, body: JSON.stringify(flight.request) }, stream.call);
  }

  /** Serialises a request in turns. A flight that was ended meanwhile is not sent. */
  async #sendLarge(request: Json, headers: string[], call: HttpCall, turns: Turns): Promise<void> {
    const body = await jsonInTurns(request, turns);
    if (!call.isDone) this.#options.client.send({ method: "POST", headers, body }, call);
  }

  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = new HttpCall({
        onResponse: (status) => {
          if (status < 200 || status > 299) throw statusError(status);
          resolve();
          return maxErrorBytes;
        },
        onFault: reject,
      });
      const headers = [...this.#headers, ...this.#revisionHeader];
      this.#options.client.send({ method: "POST", headers, body: JSON.stringify(message) }, call);
    });
  }

  begin(revision: string, serverStream: boolean): void {
    this.#revisionHeader = ["mcp-protocol-version", revision];
    if (!serverStream || this.#isClosed) return;
    this.#stream?.stop();
    const gate = new FloodGate(this.#options.clock);
    this.#stream = new ServerStream({
      bounds: this.#options.bounds,
      open: (lastEventId, call) => this.#get(lastEventId, call),
      onMessage: (message, bytes) => {
        gate.admit(bytes);
        this.#onSideMessage(message, undefined);
      },
      onEnd: (status, error) => this.#onStreamEnd(status, error),
    });
  }

  forgetSession(): void {
    this.#session = undefined;
    this.#revisionHeader = [];
    this.#headers = this.#baseHeaders();
    this.#stream?.stop();
    this.#stream = undefined;
  }

  /** Ends the session with a DELETE, which an upstream may refuse or leave unanswered. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#stream?.stop();
    this.#ending ??= this.#session === undefined ? Promise.resolve() : this.#endSession();
    return this.#ending;
  }

  #endSession(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => resolve();
      const call = new HttpCall({ onResponse: () => maxErrorBytes, onBody: done, onFault: done });
      this.#options.client.send({ method: "DELETE", headers: [...this.#headers, ...this.#revisionHeader] }, call);
      setTimeout(() => {
        call.stop();
        resolve();
      }, deleteGraceMs).unref();
    });
  }

  #get(lastEventId: string | undefined, call: HttpCall): void {
    const resume = lastEventId === undefined ? [] : ["last-event-id", lastEventId];
    this.#options.client.send({ method: "GET", headers: [...this.#headers, ...this.#revisionHeader, ...resume] }, call);
  }

  #onSideMessage(message: JsonRpcMessage, flight: Flight | undefined): void {
    if (message.kind === "notification") this.#listener.onNotification(message.message, flight);
    else if (message.kind === "request") this.#listener.onRequest(message.message, flight);
    else throw misdirected();
  }

  #keepSession(headers: IncomingHttpHeaders): void {
    const session = headers["mcp-session-id"];
    if (session === undefined) return;
    if (typeof session !== "string" || !sessionPattern.test(session)) {
      throw new GatewayError("UPSTREAM_INVALID", "expected a session id of 1 to 1024 visible ASCII characters");
    }
    this.#session = session;
    this.#headers = this.#baseHeaders();
  }

  /** Handles a request that the upstream did not process. Returns whether that is because of the session. */
  #onUnserved(session: string | undefined, flight: Flight, isCertain: boolean): boolean {
    if (session === undefined) return false;
    if (session === this.#session || this.#session === undefined) {
      return this.#listener.onSessionLost(flight, isCertain);
    }
    this.send(flight); // another request has renewed the session since
    return true;
  }

  #onStreamEnd(status: number | undefined, error: GatewayError): void {
    if (this.#isClosed) return;
    if (status === 404) this.#listener.onSessionLost(undefined, true);
    else if (status === undefined) this.#listener.onClose(error);
    // Any other refusal, usually 405, means that the server offers no such stream.
  }

  #baseHeaders(): readonly string[] {
    const headers = ["content-type", "application/json", "accept", "application/json, text/event-stream"];
    headers.push(...this.#options.client.headers);
    if (this.#session !== undefined) headers.push("mcp-session-id", this.#session);
    return headers;
  }
}

interface RequestStreamListener {
  /** A notification or request beside the response. */
  onMessage(message: JsonRpcMessage): void;
  onInitialized(headers: IncomingHttpHeaders): void;
  /**
   * The request was not processed: HTTP 404, the status for a lost session, or 400, which many servers send instead.
   * Returns whether the listener handles the flight.
   */
  onUnserved(isCertain: boolean): boolean;
  resume(lastEventId: string, call: HttpCall): void;
}

/** The response to one POST: JSON, or an event stream that is resumed by a GET where it was interrupted. */
class RequestStream implements CallListener {
  readonly call: HttpCall;
  readonly #flight: Flight;
  readonly #bounds: ReplyBounds;
  readonly #clock: Clock;
  readonly #listener: RequestStreamListener;
  #gate: FloodGate | undefined;
  /** The reader of a long body or of an event stream. */
  #reader: MessageReader | undefined;
  #status = 0;
  #type = "";
  #lastEventId: string | undefined;
  #resumed: ServerStream | undefined;

  constructor(flight: Flight, bounds: ReplyBounds, clock: Clock, listener: RequestStreamListener) {
    this.#flight = flight;
    this.#bounds = bounds;
    this.#clock = clock;
    this.#listener = listener;
    this.call = new HttpCall(this);
    flight.release = this.#release;
  }

  onResponse(status: number, headers: IncomingHttpHeaders): SseReader | number {
    this.#status = status;
    this.#type = mediaType(headers);
    if (status !== 200) {
      if (status < 400) throw statusError(status);
      return maxErrorBytes;
    }
    if (this.#flight.request.method === "initialize") this.#listener.onInitialized(headers);
    if (this.#type === "application/json") return this.#bounds.bytes;
    if (this.#type !== "text/event-stream") {
      throw new GatewayError("UPSTREAM_INVALID", "expected an answer of application/json or text/event-stream");
    }
    const reader = this.#openReader();
    return new SseReader(this.#bounds.bytes, {
      onEvent: (event) => this.#onEvent(event, reader),
      onEnd: (retryMs) => {
        const error = new GatewayError("UPSTREAM_UNAVAILABLE", "the stream ended without an answer");
        reader.follow(() => this.#onInterrupted(error, retryMs));
      },
    });
  }

  onBody(body: JsonData): void {
    if (this.#status !== 200) {
      this.#onRefusal(body);
      return;
    }
    if (body.length >= longText) {
      const use = (read: JsonRpcMessage): void => {
        if (read.kind !== "response") throw noAnswer(read);
        this.#flight.settle({ response: read.message });
      };
      this.#openReader().read(body, use, this.#refuse);
      return;
    }
    const read = readReply(body, this.#bounds);
    if (read.kind !== "response") throw noAnswer(read);
    this.#flight.settle({ response: read.message });
  }

  onFault(error: GatewayError): void {
    if (this.#reader === undefined) this.#fail(error);
    else this.#reader.follow(() => this.#fail(error));
  }

  /** The reader of a long body, or of an event stream. While it reads over several turns, no time of the upstream's passes. */
  #openReader(): MessageReader {
    const { call } = this;
    const flight = this.#flight;
    const source = {
      pause: () => {
        flight.holdDeadline();
        call.pause();
      },
      resume: () => {
        flight.progress();
        call.resume();
      },
    };
    this.#reader = new MessageReader({ bounds: this.#bounds, source, pause: flight.exchange.pause });
    return this.#reader;
  }

  readonly #refuse = (error: GatewayError): void => {
    this.call.stop();
    this.#fail(error);
  };

  #fail(error: GatewayError): void {
    if (error.code === "UPSTREAM_UNAVAILABLE") this.#onInterrupted(error, undefined);
    else this.#flight.settle({ fault: error });
  }

  /** A refusal may carry a JSON-RPC error, which is then the upstream's response. */
  #onRefusal(body: JsonData): void {
    const status = this.#status;
    const response = this.#type === "application/json" ? this.#readError(body) : undefined;
    const isUnserved = response?.id !== this.#flight.request.id && (status === 404 || status === 400);
    if (isUnserved && this.#listener.onUnserved(status === 404)) return;
    this.#flight.settle(response === undefined ? { fault: statusError(status) } : { response });
  }

  #readError(body: JsonData): JsonRpcResponse | undefined {
    try {
      const { kind, message } = readReply(body, this.#bounds);
      if (kind !== "response" || !("error" in message)) return undefined;
      return message.id === null || message.id === this.#flight.request.id ? message : undefined;
    } catch {
      return undefined; // the status is reported instead
    }
  }

  #onEvent(event: SseEvent, reader: MessageReader): void {
    if (this.#flight.isSettled) return;
    this.#lastEventId = eventId(event) ?? this.#lastEventId;
    const { data } = event;
    if (isMessage(event)) reader.read(data, (read) => this.#onMessage(read, data.length), this.#refuse);
  }

  #onMessage(read: JsonRpcMessage, bytes: number): void {
    if (this.#flight.isSettled) return;
    if (read.kind === "response") {
      this.#flight.settle({ response: read.message });
      return;
    }
    this.#gate ??= new FloodGate(this.#clock);
    this.#gate.admit(bytes);
    this.#listener.onMessage(read);
  }

  /** Resumes the stream where the upstream numbered its events, else fails the request. */
  #onInterrupted(error: GatewayError, retryMs: number | undefined): void {
    if (this.#flight.isSettled) return;
    if (this.#lastEventId === undefined) {
      this.#flight.settle({ fault: error });
      return;
    }
    this.#resumed = new ServerStream({
      bounds: this.#bounds,
      open: (lastEventId, call) => this.#listener.resume(lastEventId as string, call),
      onMessage: (message, bytes) => this.#onMessage(message, bytes),
      onEnd: (_, fault) => this.#flight.settle({ fault }),
      lastEventId: this.#lastEventId,
      retryMs,
    });
  }

  readonly #release = (hasResponse: boolean): void => {
    this.#resumed?.stop();
    if (!hasResponse) this.call.stop();
    else if (!this.call.isDone) setTimeout(() => this.call.stop(), lingerMs).unref();
  };
}

function noAnswer({ kind }: JsonRpcMessage): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", `expected an answer, got a ${kind}`);
}
