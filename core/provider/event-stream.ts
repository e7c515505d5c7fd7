import { GatewayError } from "../action/error.ts";
import type { ModelApi } from "../action/model-api.ts";
import type { ProviderExchange } from "./exchange.ts";
import type { ProviderSecret } from "./outgoing.ts";
import { doneData, EventReader, type WireEvent } from "./wire/event-reader.ts";
import type { StreamTranslator } from "./wire/translate.ts";

interface EventStreamParts {
  readonly exchange: ProviderExchange;
  /** The part of the body that was read before. */
  readonly first: Uint8Array;
  /** The provider's. */
  readonly api: ModelApi;
  readonly secret: ProviderSecret;
  readonly translator: StreamTranslator;
  readonly maxBytes: number;
  /** Called once, at the first event. */
  readonly onBegun: () => void;
  /** Called once at the end, with the fault where there is one; CANCELLED where the reader left early. */
  readonly onEnd: (error: GatewayError | undefined) => void;
}

/** The time the body may take to end after its last event, so that the connection can be reused. */
const drainMs = 1_000;

/**
 * The events of a streamed response up to its last one; the body is read on demand. Rejects with
 * PROVIDER_INVALID for a stream that ends before that, is too long, or is no stream, and with what the exchange and the
 * translator throw. A reader that leaves before the end frees the connection at once.
 */
export class EventStream implements AsyncIterableIterator<WireEvent, void, void> {
  readonly #parts: EventStreamParts;
  readonly #reader: EventReader = new EventReader();
  /** The events of the last chunk. */
  #ready: readonly WireEvent[] = [];
  #next = 0;
  #first: Uint8Array | undefined;
  #bytes = 0;
  #hasBegun = false;
  #end: StreamEnd | undefined;
  #fault: GatewayError | undefined;
  #isClosed = false;

  constructor(parts: EventStreamParts) {
    this.#parts = parts;
    this.#first = parts.first;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Returns an event that was already read without a turn of its own: streams are many small events. */
  next(): Promise<IteratorResult<WireEvent, void>> {
    const value = this.#ready[this.#next++];
    return value === undefined ? this.#more() : Promise.resolve({ done: false, value });
  }

  async return(): Promise<IteratorResult<WireEvent, void>> {
    this.#close();
    return { done: true, value: undefined };
  }

  async #more(): Promise<IteratorResult<WireEvent, void>> {
    while (!this.#isClosed && this.#fault === undefined && this.#end === undefined) {
      await this.#read();
      const value = this.#ready[0];
      this.#next = 1;
      if (value !== undefined) return { done: false, value };
    }
    const fault = this.#isClosed ? undefined : this.#fault;
    this.#close();
    if (fault !== undefined) throw fault;
    return { done: true, value: undefined };
  }

  async #read(): Promise<void> {
    const ready: WireEvent[] = [];
    this.#ready = ready;
    try {
      const chunk = this.#first ?? (await this.#parts.exchange.read());
      this.#first = undefined;
      if (chunk === undefined) this.#finish(ready);
      else this.#accept(this.#eventsOf(chunk), ready);
    } catch (cause) {
      this.#fault = GatewayError.from(cause);
    }
  }

  #eventsOf(chunk: Uint8Array): readonly WireEvent[] {
    const { maxBytes } = this.#parts;
    this.#bytes += chunk.length;
    if (this.#bytes <= maxBytes) return this.#reader.push(chunk);
    throw new GatewayError("PROVIDER_INVALID", `expected a stream of at most ${maxBytes} bytes, got more`);
  }

  /** Appends the translated events; those before a fault are delivered before it. */
  #accept(events: readonly WireEvent[], ready: WireEvent[]): void {
    const { secret, translator, api, onBegun } = this.#parts;
    for (const event of events) {
      secret.refuse(event.raw);
      if (!this.#hasBegun) onBegun();
      this.#hasBegun = true;
      ready.push(...translator.push(event));
      this.#end = endOf(api, event);
      if (this.#end !== undefined) return;
    }
  }

  #finish(ready: WireEvent[]): void {
    this.#accept(this.#reader.end(), ready);
    if (this.#end !== undefined) return;
    throw new GatewayError("PROVIDER_INVALID", "the stream ended before its last event");
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { exchange, onEnd } = this.#parts;
    const fault = this.#fault ?? faultOf(this.#end);
    onEnd(fault);
    if (this.#end === undefined && fault !== undefined) exchange.fail(fault);
    else void drain(exchange);
  }
}

/** The kind of event that ends a stream. */
type StreamEnd = "done" | "error";

function endOf(api: ModelApi, { event, data }: WireEvent): StreamEnd | undefined {
  if (api === "messages") return event === "message_stop" ? "done" : event === "error" ? "error" : undefined;
  if (data === doneData) return "done";
  return /^\s*\{\s*"error"\s*:\s*[^\sn]/.test(data) ? "error" : undefined;
}

/** The provider's fault in an end that raised no error. */
function faultOf(end: StreamEnd | undefined): GatewayError | undefined {
  if (end === undefined) return new GatewayError("CANCELLED", "the reader left before the end of the answer");
  return end === "done"
    ? undefined
    : new GatewayError("PROVIDER_UNAVAILABLE", "the provider ended its stream with an error");
}

async function drain(exchange: ProviderExchange): Promise<void> {
  const abandon = (): void => exchange.fail(new GatewayError("PROVIDER_INVALID", "expected the end of the body"));
  const timer = setTimeout(abandon, drainMs);
  try {
    while ((await exchange.read()) !== undefined);
  } catch {
    // The response was complete: bytes after it are ignored.
  } finally {
    clearTimeout(timer);
  }
}
