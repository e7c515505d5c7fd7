import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { ProviderEndpoint, ProviderExchange, ProviderRequest, ResponseHead } from "../exchange.ts";
import { pause } from "../provider.ts";
import { complete, errorOf } from "./completion.ts";

/** A provider in the gateway itself: it speaks chat completions, opens no socket, and answers the same to the same. */
export class MockProviderEndpoint implements ProviderEndpoint {
  readonly api: ModelApi = "chat";
  readonly #open: Set<MockExchange> = new Set();

  send({ body, stream }: ProviderRequest): ProviderExchange {
    const exchange = new MockExchange(perform(JSON.parse(body) as JsonObject, stream), () =>
      this.#open.delete(exchange),
    );
    this.#open.add(exchange);
    return exchange;
  }

  async close(): Promise<void> {
    for (const exchange of this.#open) exchange.fail(new GatewayError("PROVIDER_UNAVAILABLE", "it was closed"));
  }
}

function perform(request: JsonObject, stream: boolean): Performance {
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

/** An answer as it is going to be given. */
interface Performance {
  readonly head: ResponseHead;
  /** Before the first byte. */
  readonly stallMs: number;
  /** Before each further chunk. */
  readonly pauseMs: number;
  readonly chunks: readonly Uint8Array[];
  /** True if the connection is lost after the chunks. */
  readonly dies: boolean;
}

/** An exchange without a connection: the response is known from the start. */
class MockExchange implements ProviderExchange {
  readonly isReached = true;
  readonly #performance: Performance;
  readonly #onEnd: () => void;
  readonly #stop: AbortController = new AbortController();
  #error: GatewayError | undefined;
  #next = 0;
  #stalled = false;

  constructor(performance: Performance, onEnd: () => void) {
    this.#performance = performance;
    this.#onEnd = onEnd;
  }

  async head(): Promise<ResponseHead> {
    await this.#stall();
    return this.#performance.head;
  }

  async read(): Promise<Uint8Array | undefined> {
    const { chunks, pauseMs, dies } = this.#performance;
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
    if (this.#stalled) return;
    this.#stalled = true;
    await this.#wait(this.#performance.stallMs);
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await pause(ms, this.#stop.signal);
    if (this.#error !== undefined) throw this.#error;
  }
}
