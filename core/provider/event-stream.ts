import { GatewayError } from "../kernel/error.ts";
import type { ModelApi } from "../kernel/model-api.ts";
import type { Exchange } from "./exchange.ts";
import type { ProviderSecret } from "./secret.ts";
import { doneData, type WireEvent } from "./wire/event.ts";
import { EventReader } from "./wire/event-reader.ts";
import type { StreamTranslator } from "./wire/stream-translator.ts";

export interface EventStreamParts {
  readonly exchange: Exchange;
  readonly api: ModelApi;
  readonly secret: ProviderSecret;
  readonly translator: StreamTranslator;
  readonly maxBytes: number;
  /** Told once: the stream is under way. */
  readonly onBegun: () => void;
  /** Told once, whatever the end: why it is not a good one, CANCELLED where nobody wanted it. */
  readonly onEnd: (error: GatewayError | undefined) => void;
}

/** After the last event, the body may take so long to end, so that the connection can be used again. */
const drainMs = 1_000;

/**
 * The events of a streamed answer up to its last one, each read when it is asked for. Rejects with PROVIDER_INVALID for
 * a stream that ends before that, is too long, or is no stream, and with what the exchange and the translator throw. A
 * reader that leaves before the end gives the connection up at once.
 */
export async function* readEvents(parts: EventStreamParts): AsyncGenerator<WireEvent, void, void> {
  const { exchange, api, secret, translator } = parts;
  let begun = false;
  let end: StreamEnd | undefined;
  let fault: GatewayError | undefined;
  try {
    for await (const event of eventsOf(exchange, parts.maxBytes)) {
      secret.refuse(event.raw);
      if (!begun) parts.onBegun();
      begun = true;
      const written = translator.push(event);
      end = endOf(api, event);
      yield* written;
      if (end !== undefined) return;
    }
    throw new GatewayError("PROVIDER_INVALID", "the stream ended before its last event");
  } catch (cause) {
    fault = GatewayError.from(cause);
    throw fault;
  } finally {
    fault ??= faultOf(end);
    parts.onEnd(fault);
    if (end === undefined) exchange.fail(fault ?? unread);
    else void drain(exchange);
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
type StreamEnd = "done" | "error";

function endOf(api: ModelApi, { event, data }: WireEvent): StreamEnd | undefined {
  if (api === "messages") return event === "message_stop" ? "done" : event === "error" ? "error" : undefined;
  if (data === doneData) return "done";
  return /^\s*\{\s*"error"\s*:\s*[^\sn]/.test(data) ? "error" : undefined;
}

const unread = new GatewayError("CANCELLED", "nobody reads the answer any more");

/** What an end says of the provider, where nothing was thrown. */
function faultOf(end: StreamEnd | undefined): GatewayError | undefined {
  if (end === undefined) return unread;
  return end === "done" ? undefined : new GatewayError("PROVIDER_UNAVAILABLE", "it ended its stream in an error");
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
