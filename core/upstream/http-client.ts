import type { IncomingHttpHeaders } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { GatewayError } from "../action/error.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { type HttpConfig, isReservedHeader } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { SseReader } from "./sse-reader.ts";

/** Sockets kept beside one request and one stream for each connection, for concurrent requests. */
const spareSockets = 128;

interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Name, value, name, value. */
  readonly headers: string[];
  /** JSON. */
  readonly body?: string | Buffer;
  /** Another path on the same origin than the configured one. */
  readonly path?: string;
}

/**
 * The sockets to one HTTP upstream. Follows no redirect, accepts no encoding, and has no timeout of its own: its
 * callers have.
 */
export class HttpClient {
  readonly url: URL;
  /** Configured headers, as name, value, name, value. */
  readonly headers: readonly string[];
  readonly #pool: Pool;
  readonly #path: string;

  constructor(config: HttpConfig, egress: EgressGuard) {
    this.url = endpointUrl(config);
    this.headers = Object.entries(config.headers).flat();
    this.#path = this.url.pathname + this.url.search;
    this.#pool = new Pool(this.url.origin, {
      connections: config.maxConnections * 2 + spareSockets,
      bodyTimeout: 0,
      headersTimeout: 0,
      connect: egress.connector(this.url, config.startTimeoutMs),
    });
  }

  /** Never throws: `call` receives the response or the fault. */
  send(request: HttpRequest, call: HttpCall): void {
    try {
      this.#pool.dispatch({ path: this.#path, ...request }, call);
    } catch (error) {
      call.fail(connectionError(error as Error));
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** Returns the address of an HTTP upstream. Throws CONFIG_INVALID for another scheme, for credentials in it and for reserved headers. */
export function endpointUrl(config: HttpConfig): URL {
  const url = parsedUrl(config.url);
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("CONFIG_INVALID", `upstream \`${config.name}\`: expected an http or https url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new GatewayError(
      "CONFIG_INVALID",
      `upstream \`${config.name}\`: expected credentials in a header, not in the url`,
    );
  }
  for (const name of Object.keys(config.headers)) {
    if (isReservedHeader(name)) {
      throw new GatewayError(
        "CONFIG_INVALID",
        `upstream \`${config.name}\`: header \`${name}\` belongs to the protocol`,
      );
    }
  }
  return url;
}

export interface CallListener {
  /**
   * Called once with the final status. Returns the reader of an event stream, or the maximum length of a body that is
   * collected for `onBody`. May throw a GatewayError, which ends the call.
   */
  onResponse(status: number, headers: IncomingHttpHeaders): SseReader | number;
  /** The whole body. May throw a GatewayError. Without this method it is discarded. */
  onBody?(body: Buffer | JoinedBytes): void;
  /** The call ended without a complete response. Not called after `stop`. */
  onFault(error: GatewayError): void;
}

/** One HTTP request and its response, on undici's lowest interface: no streams, no promises. */
export class HttpCall implements Dispatcher.DispatchHandler {
  /** True if the call has ended. Written by this class only. */
  isDone = false;
  readonly #listener: CallListener;
  #controller: Dispatcher.DispatchController | undefined;
  #events: SseReader | undefined;
  #body: Buffer = Buffer.alloc(0);
  /** A body of several chunks. */
  #joined: JoinedBytes | undefined;
  #expected = 0;
  #size = 0;
  #maxSize = 0;

  constructor(listener: CallListener) {
    this.#listener = listener;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.isDone) controller.abort(new Error("the call was stopped"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.isDone || status < 200) return;
    try {
      const body = this.#listener.onResponse(status, headers);
      if (typeof body === "number") this.#maxSize = body;
      else this.#events = body;
      this.#expected = Math.min(Number(headers["content-length"] ?? 0), this.#maxSize);
    } catch (error) {
      this.fail(GatewayError.from(error));
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isDone) return;
    this.#size += chunk.length;
    try {
      if (this.#events !== undefined) this.#events.push(chunk);
      else if (this.#size > this.#maxSize) {
        throw new GatewayError("UPSTREAM_INVALID", `expected a message of at most ${this.#maxSize} bytes, got more`);
      } else if (this.#size === chunk.length) this.#body = chunk;
      else this.#joined = (this.#joined ?? new JoinedBytes(this.#expected).add(this.#body)).add(chunk);
    } catch (error) {
      this.fail(GatewayError.from(error));
    }
  }

  onResponseEnd(): void {
    if (this.isDone) return;
    this.isDone = true;
    try {
      if (this.#events !== undefined) this.#events.end();
      else this.#listener.onBody?.(this.#joined ?? this.#body);
    } catch (error) {
      this.#listener.onFault(GatewayError.from(error));
    }
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(connectionError(error));
  }

  /** Ends the call with an error of the gateway. */
  fail(error: GatewayError): void {
    if (this.isDone) return;
    this.stop();
    this.#listener.onFault(error);
  }

  /** Reads no more of the response until `resume`. */
  pause(): void {
    if (!this.isDone) this.#controller?.pause();
  }

  resume(): void {
    if (!this.isDone) this.#controller?.resume();
  }

  /** Closes the request's stream if it is still open; the listener is not called again. */
  stop(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#controller?.abort(new Error("the call was stopped"));
  }
}

/** A connection error with its code and without the address, which is for the operator only. */
function connectionError(error: Error): GatewayError {
  const code = (error as NodeJS.ErrnoException).code ?? error.name;
  return new GatewayError("UPSTREAM_UNAVAILABLE", `the connection failed (${code})`, { cause: error });
}

/** Returns the type of a body, in lower case without parameters. Throws UPSTREAM_INVALID for an encoded one: none was requested. */
export function mediaType(headers: IncomingHttpHeaders): string {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new GatewayError("UPSTREAM_INVALID", "expected an answer without content-encoding");
  }
  const type = headers["content-type"] ?? "";
  const semicolon = type.indexOf(";");
  return (semicolon === -1 ? type : type.slice(0, semicolon)).trim().toLowerCase();
}

/** Throws unless the response is an event stream. */
export function requireEventStream(status: number, headers: IncomingHttpHeaders): void {
  if (status !== 200) throw statusError(status);
  if (mediaType(headers) !== "text/event-stream") {
    throw new GatewayError("UPSTREAM_INVALID", "expected an event stream");
  }
}

/** The error for a status whose body explains nothing. */
export function statusError(status: number): GatewayError {
  const data = { http_status: status };
  if (status >= 300 && status < 400) {
    return new GatewayError("UPSTREAM_INVALID", `expected no redirect, got HTTP ${status}`, { data });
  }
  if (status === 401 || status === 403) {
    return new GatewayError("UPSTREAM_UNAVAILABLE", `the upstream refused the gateway (HTTP ${status})`, { data });
  }
  if (status === 429) return new GatewayError("UPSTREAM_BUSY", "the upstream answered HTTP 429", { data });
  return new GatewayError("UPSTREAM_UNAVAILABLE", `the upstream answered HTTP ${status}`, { data });
}
