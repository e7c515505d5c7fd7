import { GatewayError } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";
import type { Endpoint, Exchange, OutgoingRequest } from "../exchange.ts";
import { complete, errorOf } from "./completion.ts";
import { MockExchange, type Performance } from "./exchange.ts";

/** A provider in the gateway itself: it speaks chat completions, opens no socket, and answers the same to the same. */
export class MockEndpoint implements Endpoint {
  readonly api: ModelApi = "chat";
  readonly #open: Set<MockExchange> = new Set();

  send({ body, stream }: OutgoingRequest): Exchange {
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
