import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { GatewayError } from "../action/error.ts";
import { type SseEvent, SseReader } from "./sse-reader.ts";

/** What becomes of a response's body. `push` may throw a GatewayError, which ends the call with it. */
export interface BodyReader {
  push(chunk: Buffer): void;
  end(): void;
}

interface CallListener {
  /** Called once with the final status; chooses the body's reader. May throw a GatewayError. */
  onResponse(status: number, headers: IncomingHttpHeaders): BodyReader;
  /** The call ended without a complete response. Not called after `stop`. */
  onFault(error: GatewayError): void;
}

/** One HTTP request and its response, on undici's lowest interface: no streams, no promises. */
export class HttpCall implements Dispatcher.DispatchHandler {
  readonly #listener: CallListener;
  #controller: Dispatcher.DispatchController | undefined;
  #body: BodyReader | undefined;
  #done = false;

  constructor(listener: CallListener) {
    this.#listener = listener;
  }

  get done(): boolean {
    return this.#done;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#done) controller.abort(new Error("no longer wanted"));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (this.#done || status < 200) return;
    this.#attempt(() => {
      this.#body = this.#listener.onResponse(status, headers);
    });
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#done) this.#attempt(() => this.#body?.push(chunk));
  }

  onResponseEnd(): void {
    if (this.#done) return;
    this.#done = true;
    try {
      this.#body?.end();
    } catch (error) {
      this.#listener.onFault(GatewayError.from(error));
    }
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(unavailable(error));
  }

  /** Ends the call with an error of ours. */
  fail(error: GatewayError): void {
    if (this.#done) return;
    this.stop();
    this.#listener.onFault(error);
  }

  /** Closes the request's stream if it is still open; nothing more is told. */
  stop(): void {
    if (this.#done) return;
    this.#done = true;
    this.#controller?.abort(new Error("no longer wanted"));
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.fail(GatewayError.from(error));
    }
  }
}

/** A connection error with its code and without the address, which is the operator's. */
export function unavailable(error: Error): GatewayError {
  const code = (error as NodeJS.ErrnoException).code ?? error.name;
  return new GatewayError("UPSTREAM_UNAVAILABLE", `the connection failed (${code})`, { cause: error });
}

/** Collects a body of at most `maxBytes`. */
export class WholeBody implements BodyReader {
  readonly #maxBytes: number;
  readonly #onEnd: (body: Buffer) => void;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number, onEnd: (body: Buffer) => void) {
    this.#maxBytes = maxBytes;
    this.#onEnd = onEnd;
  }

  push(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) {
      throw new GatewayError("UPSTREAM_INVALID", `expected a message of at most ${this.#maxBytes} bytes, got more`);
    }
    this.#chunks.push(chunk);
  }

  end(): void {
    this.#onEnd(this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks));
  }
}

/** Reads a body as server-sent events. */
export class EventBody implements BodyReader {
  readonly #reader: SseReader;
  readonly #onEnd: (retryMs: number | undefined) => void;

  constructor(maxBytes: number, onEvent: (event: SseEvent) => void, onEnd: (retryMs: number | undefined) => void) {
    this.#reader = new SseReader(maxBytes, onEvent);
    this.#onEnd = onEnd;
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  end(): void {
    this.#onEnd(this.#reader.retryMs);
  }
}

/** The type of a body, in lower case without parameters. Throws UPSTREAM_INVALID for an encoded one: we asked for none. */
export function mediaType(headers: IncomingHttpHeaders): string {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new GatewayError("UPSTREAM_INVALID", "expected an answer without content-encoding");
  }
  const type = headers["content-type"] ?? "";
  const semicolon = type.indexOf(";");
  return (semicolon === -1 ? type : type.slice(0, semicolon)).trim().toLowerCase();
}

/** The error that a status stands for when its body says nothing. */
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
