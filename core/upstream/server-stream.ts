import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { JsonRpcMessage } from "../action/json-rpc.ts";
import { type ReplyBounds, readReply } from "./flight.ts";
import { EventBody, HttpCall, mediaType, statusError } from "./http-call.ts";
import type { SseEvent } from "./sse-reader.ts";

const shortestRetryMs = 100;
const firstRetryMs = 1_000;
const maxRetryMs = 30_000;
const maxEventId = 1_024;
const eventIdPattern = /^[\x21-\x7e]+$/;

interface ServerStreamOptions {
  readonly bounds: ReplyBounds;
  /** Opens the stream: a GET with this `Last-Event-ID`, if any. */
  readonly open: (lastEventId: string | undefined, call: HttpCall) => void;
  /** May throw a GatewayError, which ends the stream for good. */
  readonly onMessage: (message: JsonRpcMessage, bytes: number) => void;
  /** The stream ended for good: the server offers none (405), forgot the session (404), or sent nonsense. */
  readonly onEnd: (status: number | undefined, error: GatewayError) => void;
  /** Where an interrupted stream is taken up. */
  readonly lastEventId?: string;
  readonly retryMs?: number | undefined;
}

/** An event stream that is taken up again where it broke off, until it is stopped. */
export class ServerStream {
  readonly #options: ServerStreamOptions;
  #call: HttpCall | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastEventId: string | undefined;
  #failures = 0;
  #stopped = false;

  constructor(options: ServerStreamOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId;
    if (options.lastEventId === undefined) this.#connect();
    else this.#retry(options.retryMs);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#call?.stop();
  }

  #connect(): void {
    this.#call = new HttpCall({
      onResponse: (status, headers) => this.#onResponse(status, headers),
      onFault: (error) => this.#onFault(error),
    });
    this.#options.open(this.#lastEventId, this.#call);
  }

  #onResponse(status: number, headers: IncomingHttpHeaders): EventBody {
    if (status !== 200) throw statusError(status);
    if (mediaType(headers) !== "text/event-stream") {
      throw new GatewayError("UPSTREAM_INVALID", "expected an event stream");
    }
    return new EventBody(
      this.#options.bounds.bytes,
      (event) => this.#onEvent(event),
      (retryMs) => this.#retry(retryMs),
    );
  }

  #onEvent(event: SseEvent): void {
    if (this.#stopped) return;
    this.#failures = 0;
    this.#lastEventId = eventId(event) ?? this.#lastEventId;
    if (!isMessage(event)) return;
    this.#options.onMessage(readReply(event.data, this.#options.bounds), event.data.length);
  }

  #onFault(error: GatewayError): void {
    const status = error.data?.http_status;
    const passing =
      error.code !== "UPSTREAM_INVALID" && (typeof status !== "number" || status >= 500 || status === 429);
    if (passing) this.#retry(undefined);
    else this.#options.onEnd(typeof status === "number" ? status : undefined, error);
  }

  #retry(askedMs: number | undefined): void {
    if (this.#stopped) return;
    const ownMs = Math.min(maxRetryMs, firstRetryMs * 2 ** this.#failures++);
    const delayMs = Math.min(maxRetryMs, Math.max(shortestRetryMs, askedMs ?? ownMs));
    this.#timer = setTimeout(() => this.#connect(), delayMs);
  }
}

/** An event's id where it can go into a header again. */
export function eventId(event: SseEvent): string | undefined {
  const { id } = event;
  return id !== undefined && id.length <= maxEventId && eventIdPattern.test(id) ? id : undefined;
}

/** Other event names are other people's; an event without data only carries an id. */
export function isMessage(event: SseEvent): boolean {
  return (event.event === undefined || event.event === "message") && event.data !== "";
}
