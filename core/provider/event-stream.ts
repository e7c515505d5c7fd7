import { GatewayError } from "../action/error.ts";
import { isGiven, type Json } from "../action/json.ts";
import type { ModelApi } from "../action/model-api.ts";
import type { ProviderExchange } from "./exchange.ts";
import type { ProviderSecret } from "./outgoing.ts";
import { doneData, EventReader, eventObject, type WireEvent } from "./wire/event-reader.ts";
import type { StreamTranslator } from "./wire/translate.ts";

interface EventStreamParts {
  readonly exchange: ProviderExchange;
  /** The part of the body that was read before. */
  readonly first: Uint8Array;
  /** The provider's. */
  readonly api: ModelApi;
  readonly clientApi: ModelApi;
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
 * The events of a streamed response up to its last one; the body is read on demand. An error is the last event, but for the
 * mark of the end that a provider of the chat API sends after it within a second. Rejects with
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
  /** True once nothing more is read: after an error the mark of the end may follow. */
  #isOver = false;
  #markTimer: NodeJS.Timeout | undefined;
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
    while (!this.#isClosed && this.#fault === undefined && !this.#isOver) {
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
      if (this.#end === undefined) this.#fault = GatewayError.from(cause);
      // The client has the provider's error, whatever comes after it.
      else this.#isOver = true;
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
      this.#isOver = this.#end !== undefined && event.keepAlive !== true && event.data !== doneData;
      if (this.#isOver) return;
      secret.refuse(event.raw);
      if (!this.#hasBegun) onBegun();
      this.#hasBegun = true;
      ready.push(...translator.push(event));
      const end = endOf(api, event);
      if (end !== undefined) this.#endWith(end);
      if (this.#isOver) return;
    }
  }

  #endWith(end: StreamEnd): void {
    const { api, clientApi, exchange } = this.#parts;
    this.#end ??= end;
    this.#isOver = end === "done" || api !== "chat" || clientApi !== "chat";
    if (!this.#isOver) this.#markTimer = setTimeout(() => abandon(exchange), drainMs);
  }

  #finish(ready: WireEvent[]): void {
    this.#accept(this.#reader.end(), ready);
    this.#isOver = true;
    if (this.#end !== undefined) return;
    throw new GatewayError("PROVIDER_INVALID", "the stream ended before its last event");
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#markTimer);
    const { exchange, onEnd } = this.#parts;
    const fault = this.#fault ?? faultOf(this.#end);
    onEnd(fault);
    if (this.#end === undefined && fault !== undefined) exchange.fail(fault);
    else void drain(exchange);
  }
}

/** The kind of event that ends a stream. */
type StreamEnd = "done" | "error";

function endOf(api: ModelApi, event: WireEvent): StreamEnd | undefined {
  if (api === "messages") {
    return event.event === "message_stop" ? "done" : event.event === "error" ? "error" : undefined;
  }
  if (api === "responses") {
    return event.keepAlive === true ? undefined : responsesEndOf(event.event ?? eventObject(event).type);
  }
  if (event.data === doneData) return "done";
  // Inside of a text the name would be escaped: few chunks are parsed for this.
  return event.data.includes('"error"') && isGiven(eventObject(event).error) ? "error" : undefined;
}

function responsesEndOf(type: Json | undefined): StreamEnd | undefined {
  if (type === "response.completed" || type === "response.incomplete") return "done";
  return type === "error" || type === "response.failed" ? "error" : undefined;
}

/** The provider's fault in an end that raised no error. */
function faultOf(end: StreamEnd | undefined): GatewayError | undefined {
  if (end === undefined) return new GatewayError("CANCELLED", "the reader left before the end of the answer");
  return end === "done"
    ? undefined
    : new GatewayError("PROVIDER_UNAVAILABLE", "the provider ended its stream with an error");
}

async function drain(exchange: ProviderExchange): Promise<void> {
  const timer = setTimeout(() => abandon(exchange), drainMs);
  try {
    while ((await exchange.read()) !== undefined);
  } catch {
    // The response was complete: bytes after it are ignored.
  } finally {
    clearTimeout(timer);
  }
}

function abandon(exchange: ProviderExchange): void {
  exchange.fail(new GatewayError("PROVIDER_INVALID", "expected the end of the body"));
}
