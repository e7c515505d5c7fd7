import { GatewayError } from "../action/error.ts";
import type { ModelApi } from "../action/model-api.ts";
import type { Exchange } from "./exchange.ts";
import type { ProviderSecret } from "./outgoing.ts";
import { doneData, EventReader, type WireEvent } from "./wire/event-reader.ts";
import type { StreamTranslator } from "./wire/translate.ts";

interface EventStreamParts {
  readonly exchange: Exchange;
  /** What was read of the body so far. */
  readonly first: Uint8Array;
  /** The provider's. */
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
 * The events of a streamed answer up to its last one; the body is read when they are asked for. Rejects with
 * PROVIDER_INVALID for a stream that ends before that, is too long, or is no stream, and with what the exchange and the
 * translator throw. A reader that leaves before the end gives the connection up at once.
 */
export class EventStream implements AsyncIterableIterator<WireEvent, void, void> {
  readonly #parts: EventStreamParts;
  readonly #reader: EventReader = new EventReader();
  /** Those of the chunk that was read last; no more than fit into it. */
  #ready: readonly WireEvent[] = [];
  #next = 0;
  #first: Uint8Array | undefined;
  #bytes = 0;
  #begun = false;
  #end: StreamEnd | undefined;
  #fault: GatewayError | undefined;
  #closed = false;

  constructor(parts: EventStreamParts) {
    this.#parts = parts;
    this.#first = parts.first;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** An event that is there takes no turn of its own: streams are many small events. */
  next(): Promise<IteratorResult<WireEvent, void>> {
    const value = this.#ready[this.#next++];
    return value === undefined ? this.#more() : Promise.resolve({ done: false, value });
  }

  async return(): Promise<IteratorResult<WireEvent, void>> {
    this.#close();
    return { done: true, value: undefined };
  }

  async #more(): Promise<IteratorResult<WireEvent, void>> {
    while (!this.#closed && this.#fault === undefined && this.#end === undefined) {
      await this.#read();
      const value = this.#ready[0];
      this.#next = 1;
      if (value !== undefined) return { done: false, value };
    }
    const fault = this.#closed ? undefined : this.#fault;
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

  /** What was good before a fault goes first. */
  #accept(events: readonly WireEvent[], ready: WireEvent[]): void {
    const { secret, translator, api, onBegun } = this.#parts;
    for (const event of events) {
      secret.refuse(event.raw);
      if (!this.#begun) onBegun();
      this.#begun = true;
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
    if (this.#closed) return;
    this.#closed = true;
    const { exchange, onEnd } = this.#parts;
    const fault = this.#fault ?? faultOf(this.#end);
    onEnd(fault);
    if (this.#end === undefined && fault !== undefined) exchange.fail(fault);
    else void drain(exchange);
  }
}

/** The event after which a client listens no more. */
type StreamEnd = "done" | "error";

function endOf(api: ModelApi, { event, data }: WireEvent): StreamEnd | undefined {
  if (api === "messages") return event === "message_stop" ? "done" : event === "error" ? "error" : undefined;
  if (data === doneData) return "done";
  return /^\s*\{\s*"error"\s*:\s*[^\sn]/.test(data) ? "error" : undefined;
}

/** What an end says of the provider, where nothing was thrown. */
function faultOf(end: StreamEnd | undefined): GatewayError | undefined {
  if (end === undefined) return new GatewayError("CANCELLED", "nobody reads the answer any more");
  return end === "done" ? undefined : new GatewayError("PROVIDER_UNAVAILABLE", "it ended its stream in an error");
}

async function drain(exchange: Exchange): Promise<void> {
  const giveUp = (): void => exchange.fail(new GatewayError("PROVIDER_INVALID", "expected the end of the body"));
  const timer = setTimeout(giveUp, drainMs);
  try {
    while ((await exchange.read()) !== undefined);
  } catch {
    // The answer was whole: what comes after it interests nobody.
  } finally {
    clearTimeout(timer);
  }
}
