import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { GatewayError } from "../kernel/error.ts";
import type { Exchange, Head } from "./exchange.ts";

/** What is kept of a body that nobody reads; the socket is left unread beyond that. */
const mostBufferedBytes = 65_536;

/** An exchange over HTTP, on undici's lowest interface: no streams, and no timeout of its own. */
export class HttpExchange implements Dispatcher.DispatchHandler, Exchange {
  readonly #chunks: Buffer[] = [];
  readonly #head: Promise<Head>;
  #begin!: (head: Head) => void;
  #refuse!: (error: GatewayError) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #buffered = 0;
  #ended = false;
  #error: GatewayError | undefined;
  #reader: Reader | undefined;
  readonly #onTaken: () => void;
  #queued = true;

  /** `onTaken` is told once, when the request no longer waits for a connection. */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken;
    this.#head = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#refuse = reject;
    });
    // Whoever reads the body first learns of the fault there.
    this.#head.catch(() => undefined);
  }

  get reached(): boolean {
    return this.#controller !== undefined;
  }

  head(): Promise<Head> {
    return this.#head;
  }

  read(): Promise<Uint8Array | undefined> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#buffered -= chunk.length;
      if (this.#buffered === 0) this.#controller?.resume();
      return Promise.resolve(chunk);
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  fail(error: GatewayError): void {
    if (this.#ended || this.#error !== undefined) return;
    this.#chunks.length = 0;
    this.#settle(error);
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // INVARIANT: undici calls this right before it writes the request to an open connection.
    this.#leaveQueue();
    if (this.#error !== undefined) controller.abort(this.#error);
    else this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status >= 200) this.#begin({ status, headers });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#error !== undefined) return;
    if (this.#reader !== undefined) {
      this.#take()?.resolve(chunk);
      return;
    }
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#buffered >= mostBufferedBytes) controller.pause();
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#take()?.resolve(undefined);
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#leaveQueue();
    if (!this.#ended && this.#error === undefined) this.#settle(unavailable(error));
  }

  #leaveQueue(): void {
    if (this.#queued) this.#onTaken();
    this.#queued = false;
  }

  #settle(error: GatewayError): void {
    this.#error = error;
    this.#refuse(error);
    this.#take()?.reject(error);
  }

  #take(): Reader | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}

interface Reader {
  resolve(chunk: Uint8Array | undefined): void;
  reject(error: GatewayError): void;
}

/** A connection error with its code and without the address, which is the operator's. */
function unavailable(error: Error): GatewayError {
  const code = (error as NodeJS.ErrnoException).code ?? error.name;
  return new GatewayError("PROVIDER_UNAVAILABLE", `the connection failed (${code})`, { cause: error });
}
