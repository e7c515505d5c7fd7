import type { IncomingHttpHeaders } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { GatewayError } from "../action/error.ts";
import type { ModelApi, ModelPurpose } from "../action/model-api.ts";
import { apiOf, type HttpProviderConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { ProviderEndpoint, ProviderExchange, ProviderRequest, ResponseHead } from "./exchange.ts";

const connectMs = 10_000;
const paths: Readonly<Record<ModelApi, string>> = {
  chat: "/chat/completions",
  messages: "/v1/messages",
  responses: "/responses",
};
const usualVersion = "2023-06-01";

/** The sockets to one provider. Follows no redirect and accepts no encoding. */
export class HttpProviderEndpoint implements ProviderEndpoint {
  readonly api: ModelApi;
  readonly #pool: Pool;
  readonly #paths: Readonly<Record<ModelPurpose, string>>;
  readonly #headers: Readonly<Record<string, string>>;
  /** Counts abandoned requests too: they stay in the pool's queue until a connection opens or fails. */
  readonly #maxQueued: number;
  #queued = 0;

  constructor(config: HttpProviderConfig, egress: EgressGuard) {
    this.api = apiOf(config.type);
    const url = new URL(config.baseUrl);
    this.#maxQueued = config.maxConnections * 2;
    const base = url.pathname.replace(/\/$/, "");
    const path = base + paths[this.api];
    this.#paths = {
      answer: path + url.search,
      count: `${path}/count_tokens${url.search}`,
      embed: `${base}/embeddings${url.search}`,
    };
    this.#headers = {
      "content-type": "application/json",
      "accept-encoding": "identity",
      ...ownHeaders(this.api, config),
    };
    this.#pool = new Pool(url.origin, {
      connections: config.maxConnections,
      bodyTimeout: 0,
      headersTimeout: 0,
      connect: egress.connector(url, connectMs),
    });
  }

  send({ body, purpose, stream, headers }: ProviderRequest): ProviderExchange {
    const exchange = new HttpExchange(() => {
      this.#queued--;
    });
    if (this.#queued >= this.#maxQueued) {
      exchange.fail(new GatewayError("PROVIDER_UNAVAILABLE", "too many requests wait for a connection"));
      return exchange;
    }
    this.#queued++;
    const accept = stream ? "text/event-stream" : "application/json";
    // The exchange receives every fault, including that of a closed pool.
    this.#pool.dispatch(
      { path: this.#paths[purpose], method: "POST", headers: { ...this.#headers, accept, ...headers }, body },
      exchange,
    );
    return exchange;
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function ownHeaders(api: ModelApi, { apiKey }: HttpProviderConfig): Readonly<Record<string, string>> {
  if (api !== "messages") return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  return { "anthropic-version": usualVersion, ...(apiKey === null ? {} : { "x-api-key": apiKey }) };
}

/** The bytes buffered for a slow reader; beyond that the socket is paused. */
const maxBufferedBytes = 65_536;

/** An exchange over HTTP, on undici's lowest interface: no streams, and no timeout of its own. */
class HttpExchange implements Dispatcher.DispatchHandler, ProviderExchange {
  readonly #chunks: Buffer[] = [];
  readonly #head: Promise<ResponseHead>;
  #begin!: (head: ResponseHead) => void;
  #refuse!: (error: GatewayError) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #buffered = 0;
  #ended = false;
  #error: GatewayError | undefined;
  #reader: Reader | undefined;
  readonly #onTaken: () => void;
  #queued = true;

  /** `onTaken` is called once, when the request no longer waits for a connection. */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken;
    this.#head = new Promise((resolve, reject) => {
      this.#begin = resolve;
      this.#refuse = reject;
    });
    // A caller that reads the body first receives the fault there.
    this.#head.catch(() => undefined);
  }

  get isReached(): boolean {
    return this.#controller !== undefined;
  }

  head(): Promise<ResponseHead> {
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
    if (this.#buffered >= maxBufferedBytes) controller.pause();
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

/** A connection error with its code and without the address, which is for the operator only. */
function unavailable(error: Error): GatewayError {
  const code = (error as NodeJS.ErrnoException).code ?? error.name;
  return new GatewayError("PROVIDER_UNAVAILABLE", `the connection failed (${code})`, { cause: error });
}
