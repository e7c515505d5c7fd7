import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcResponse } from "../action/json-rpc.ts";
import { FloodGate } from "./change-watch.ts";
import type { Transport, TransportListener } from "./duplex-transport.ts";
import type { Flight, ReplyBounds } from "./flight.ts";
import { type BodyReader, HttpCall, statusError, WholeBody } from "./http-call.ts";
import type { HttpClient } from "./http-client.ts";
import { mirrorHeaders, type ParamHeader } from "./mcp-header.ts";
import { RequestStream } from "./request-stream.ts";
import { ServerStream } from "./server-stream.ts";

const ignoredBodyBytes = 65_536;
const deleteGraceMs = 1_000;
const sessionPattern = /^[\x21-\x7e]{1,1024}$/;

interface HttpTransportOptions {
  readonly client: HttpClient;
  readonly bounds: ReplyBounds;
  readonly clock: Clock;
  readonly paramHeaders: (tool: string) => readonly ParamHeader[];
}

/** Streamable HTTP: a POST for each message, its answer as JSON or as an event stream, and a GET stream for the rest. */
export class HttpTransport implements Transport {
  readonly hasRequestStreams = true;
  readonly #options: HttpTransportOptions;
  #listener!: TransportListener;
  #session: string | undefined;
  #headers: readonly string[];
  /** For messages that do not name their revision themselves. */
  #revisionHeader: readonly string[] = [];
  #stream: ServerStream | undefined;
  #ending: Promise<void> | undefined;
  #closed = false;

  constructor(options: HttpTransportOptions) {
    this.#options = options;
    this.#headers = this.#baseHeaders();
  }

  listen(listener: TransportListener): void {
    this.#listener = listener;
  }

  send(flight: Flight): void {
    const session = this.#session;
    const stream = new RequestStream(flight, this.#options.bounds, new FloodGate(this.#options.clock), {
      onMessage: (message) => this.#onSideMessage(message, flight),
      onInitialized: (headers) => this.#keepSession(headers),
      onMissing: (certain) => this.#onMissing(session, flight, certain),
      resume: (lastEventId, call) => this.#get(lastEventId, call),
    });
    const mirrored = mirrorHeaders(flight.request, this.#options.paramHeaders);
    const headers = [
      ...this.#headers,
      ...(mirrored.length > 0 ? mirrored : this.#revisionHeader),
      ...flight.traceHeader,
    ];
    this.#options.client.post(headers, JSON.stringify(flight.request), stream.call);
  }

  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = new HttpCall({
        onResponse: (status): BodyReader => {
          if (status < 200 || status > 299) throw statusError(status);
          resolve();
          return new WholeBody(ignoredBodyBytes, () => undefined);
        },
        onFault: reject,
      });
      this.#options.client.post([...this.#headers, ...this.#revisionHeader], JSON.stringify(message), call);
    });
  }

  begin(revision: string, serverStream: boolean): void {
    this.#revisionHeader = ["mcp-protocol-version", revision];
    if (!serverStream || this.#closed) return;
    this.#stream?.stop();
    const gate = new FloodGate(this.#options.clock);
    this.#stream = new ServerStream({
      bounds: this.#options.bounds,
      open: (lastEventId, call) => this.#get(lastEventId, call),
      onMessage: (message, bytes) => {
        if (!gate.admit(bytes))
          throw new GatewayError("UPSTREAM_INVALID", "the upstream floods the gateway with messages");
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
    this.#closed = true;
    this.#stream?.stop();
    this.#ending ??= this.#session === undefined ? Promise.resolve() : this.#endSession();
    return this.#ending;
  }

  #endSession(): Promise<void> {
    return new Promise((resolve) => {
      const call = new HttpCall({
        onResponse: () => new WholeBody(ignoredBodyBytes, () => resolve()),
        onFault: () => resolve(),
      });
      this.#options.client.send("DELETE", [...this.#headers, ...this.#revisionHeader], call);
      setTimeout(() => {
        call.stop();
        resolve();
      }, deleteGraceMs).unref();
    });
  }

  #get(lastEventId: string | undefined, call: HttpCall): void {
    const resume = lastEventId === undefined ? [] : ["last-event-id", lastEventId];
    this.#options.client.send("GET", [...this.#headers, ...this.#revisionHeader, ...resume], call);
  }

  #onSideMessage(message: JsonRpcMessage, flight: Flight | undefined): void {
    if (message.kind === "notification") this.#listener.onNotification(message.message, flight);
    else if (message.kind === "request") this.#listener.onRequest(message.message, flight);
    else throw new GatewayError("UPSTREAM_INVALID", "expected the id of this request, got another");
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

  /** The upstream took no notice of a request. Returns whether that was said of its session. */
  #onMissing(session: string | undefined, flight: Flight, certain: boolean): boolean {
    if (session === undefined) return false;
    if (session === this.#session || this.#session === undefined) return this.#listener.onSessionLost(flight, certain);
    this.send(flight); // another request has renewed the session since
    return true;
  }

  #onStreamEnd(status: number | undefined, error: GatewayError): void {
    if (this.#closed) return;
    if (status === 404) this.#listener.onSessionLost(undefined, true);
    else if (status === undefined) this.#listener.onClose(error);
    // Any other refusal, 405 above all, says that there is no such stream to be had.
  }

  #baseHeaders(): readonly string[] {
    const headers = ["content-type", "application/json", "accept", "application/json, text/event-stream"];
    headers.push(...this.#options.client.headers);
    if (this.#session !== undefined) headers.push("mcp-session-id", this.#session);
    return headers;
  }
}
