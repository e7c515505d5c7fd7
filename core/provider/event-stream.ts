import { GatewayError } from "../kernel/error.ts";
import type { ModelApi } from "../kernel/model-api.ts";
import type { Exchange } from "./exchange.ts";
import type { ProviderSecret } from "./secret.ts";
import { doneData, type WireEvent } from "./wire/event.ts";
import { EventReader } from "./wire/event-reader.ts";

export interface EventStreamParts {
  readonly exchange: Exchange;
  readonly api: ModelApi;
  readonly secret: ProviderSecret;
  readonly maxBytes: number;
  /** Told once: the stream is under way. */
  readonly onBegun: () => void;
  /** Told once, whatever the end: the error that broke it off, if one did. */
  readonly onEnd: (error: GatewayError | undefined) => void;
}

/** After the last event, the body may take so long to end, so that the connection can be used again. */
const drainMs = 1_000;

/**
 * The events of a streamed answer up to its last one, each read when it is asked for. Rejects with PROVIDER_INVALID for
 * a stream that ends before that, is too long, or is no stream, and with what the exchange rejects with. A reader that
 * leaves before the end gives the connection up at once.
 */
export async function* readEvents(parts: EventStreamParts): AsyncGenerator<WireEvent, void, void> {
  const { exchange, api, secret } = parts;
  let last = false;
  let fault: GatewayError | undefined;
  let begun = false;
  try {
    for await (const event of eventsOf(exchange, parts.maxBytes)) {
      secret.refuse(event.raw);
      if (!begun) parts.onBegun();
      begun = true;
      last = isLast(api, event);
      yield event;
      if (last) return;
    }
    throw new GatewayError("PROVIDER_INVALID", "the stream ended before its last event");
  } catch (cause) {
    fault = GatewayError.from(cause);
    throw fault;
  } finally {
    parts.onEnd(fault);
    if (last) void drain(exchange);
    else exchange.fail(fault ?? new GatewayError("CANCELLED", "nobody reads the answer any more"));
  }
}

async function* eventsOf(exchange: Exchange, maxBytes: number): AsyncGenerator<WireEvent, void, void> {
  const reader = new EventReader();
  let bytes = 0;
  for (let chunk = await exchange.read(); chunk !== undefined; chunk = await exchange.read()) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new GatewayError("PROVIDER_INVALID", `expected a stream of at most ${maxBytes} bytes, got more`);
    }
    yield* reader.push(chunk);
  }
  yield* reader.end();
}

/** The event after which a client listens no more. */
function isLast(api: ModelApi, { event, data }: WireEvent): boolean {
  if (api === "chat") return data === doneData;
  return event === "message_stop" || event === "error";
}

async function drain(exchange: Exchange): Promise<void> {
  const late = new GatewayError("PROVIDER_INVALID", "expected the end of the body after its last event");
  const timer = setTimeout(() => exchange.fail(late), drainMs);
  try {
    while ((await exchange.read()) !== undefined);
  } catch {
    // The answer was whole: what comes after it interests nobody.
  } finally {
    clearTimeout(timer);
  }
}
