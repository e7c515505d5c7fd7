import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { ProviderEndpoint, ProviderExchange, ProviderRequest, ResponseHead } from "../exchange.ts";
import { pause } from "../provider.ts";
import { complete, embed, errorOf } from "./completion.ts";

/** A provider inside the gateway: chat completions without a socket, and the same response to the same request. */
export class MockProviderEndpoint implements ProviderEndpoint {
  readonly api: ModelApi = "chat";
  readonly #open: Set<MockExchange> = new Set();

  send({ body, stream, purpose }: ProviderRequest): ProviderExchange {
    const request = JSON.parse(body.toString()) as JsonObject;
    const script = purpose === "embed" ? scriptEmbeddings(request) : scriptResponse(request, stream);
    const exchange = new MockExchange(script, () => this.#open.delete(exchange));
    this.#open.add(exchange);
    return exchange;
  }

  async close(): Promise<void> {
    for (const exchange of this.#open)
      exchange.fail(new GatewayError("PROVIDER_UNAVAILABLE", "the provider was closed"));
  }
}

function scriptEmbeddings(request: JsonObject): ResponseScript {
  const head = { status: 200, headers: { "content-type": "application/json" } };
  return { head, stallMs: 0, pauseMs: 0, chunks: [bytesOf(embed(request))], dies: false };
}

function scriptResponse(request: JsonObject, stream: boolean): ResponseScript {
  const { plan, body, events } = complete(request);
  const { stallMs, pauseMs, diesAfter, failure } = plan;
  const type = failure === null && stream ? "text/event-stream" : "application/json";
  const head = {
    status: failure?.status ?? 200,
    headers: { "content-type": type, ...(failure?.retryAfter == null ? {} : { "retry-after": failure.retryAfter }) },
  };
  if (failure !== null) return { head, stallMs, pauseMs: 0, chunks: [bytesOf(errorOf(failure.status))], dies: false };
  if (!stream)
    return { head, stallMs, pauseMs: 0, chunks: diesAfter === null ? [bytesOf(body)] : [], dies: diesAfter !== null };
  const chunks = events().map(({ raw }) => raw);
  return { head, stallMs, pauseMs, chunks: chunks.slice(0, diesAfter ?? chunks.length), dies: diesAfter !== null };
}

function bytesOf(body: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(body));
}

/** A response with its timing. */
interface ResponseScript {
  readonly head: ResponseHead;
  /** The delay before the first byte. */
  readonly stallMs: number;
  /** The delay before each further chunk. */
  readonly pauseMs: number;
  readonly chunks: readonly Uint8Array[];
  /** True if the connection is lost after the chunks. */
  readonly dies: boolean;
}

/** An exchange without a connection: the response is known from the start. */
class MockExchange implements ProviderExchange {
  readonly isReached = true;
  readonly #script: ResponseScript;
  readonly #onEnd: () => void;
  readonly #stop: AbortController = new AbortController();
  #error: GatewayError | undefined;
  #next = 0;
  #hasStalled = false;

  constructor(script: ResponseScript, onEnd: () => void) {
    this.#script = script;
    this.#onEnd = onEnd;
  }

  async head(): Promise<ResponseHead> {
    await this.#stall();
    return this.#script.head;
  }

  async read(): Promise<Uint8Array | undefined> {
    const { chunks, pauseMs, dies } = this.#script;
    await this.#stall();
    if (this.#next > 0) await this.#wait(pauseMs);
    const chunk = chunks[this.#next++];
    if (chunk === undefined && dies) this.fail(new GatewayError("PROVIDER_UNAVAILABLE", "the connection failed"));
    if (this.#error !== undefined) throw this.#error;
    if (chunk === undefined) this.#onEnd();
    return chunk;
  }

  fail(error: GatewayError): void {
    this.#error ??= error;
    this.#stop.abort();
    this.#onEnd();
  }

  async #stall(): Promise<void> {
    if (this.#hasStalled) return;
    this.#hasStalled = true;
    await this.#wait(this.#script.stallMs);
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await pause(ms, this.#stop.signal);
    if (this.#error !== undefined) throw this.#error;
  }
}
