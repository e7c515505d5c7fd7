import type { GatewayError } from "../action/error.ts";
import type { JsonRpcMessage } from "../action/json-rpc.ts";
import { HttpCall, requireEventStream } from "./http-client.ts";
import { MessageReader } from "./message-reader.ts";
import { eventId, isMessage, type SseEvent, SseReader } from "./sse-reader.ts";
import type { ReplyBounds } from "./transport.ts";

const minRetryMs = 100;
const firstRetryMs = 1_000;
const maxRetryMs = 30_000;

interface ServerStreamOptions {
  readonly bounds: ReplyBounds;
  /** Opens the stream: a GET with this `Last-Event-ID`, if any. */
  readonly open: (lastEventId: string | undefined, call: HttpCall) => void;
  /** May throw a GatewayError, which ends the stream for good. */
  readonly onMessage: (message: JsonRpcMessage, bytes: number) => void;
  /** The stream ended for good: the server offers none (405), lost the session (404), or sent an invalid message. */
  readonly onEnd: (status: number | undefined, error: GatewayError) => void;
  /** The position at which an interrupted stream is resumed. */
  readonly lastEventId?: string;
  readonly retryMs?: number | undefined;
}

/** An event stream that is resumed after each interruption until it is stopped. */
export class ServerStream {
  readonly #options: ServerStreamOptions;
  #call: HttpCall | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastEventId: string | undefined;
  #failures = 0;
  #isStopped = false;

  constructor(options: ServerStreamOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId;
    if (options.lastEventId === undefined) this.#connect();
    else this.#retry(options.retryMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#call?.stop();
  }

  #connect(): void {
    const { bounds } = this.#options;
    const call: HttpCall = new HttpCall({
      onResponse: (status, headers) => {
        requireEventStream(status, headers);
        return new SseReader(bounds.bytes, {
          onEvent: (event) => this.#onEvent(event, reader, call),
          onEnd: (retryMs) => reader.follow(() => this.#retry(retryMs)),
        });
      },
      onFault: (error) => reader.follow(() => this.#onFault(error)),
    });
    const reader = new MessageReader({ bounds, source: call });
    this.#call = call;
    this.#options.open(this.#lastEventId, call);
  }

  #onEvent(event: SseEvent, reader: MessageReader, call: HttpCall): void {
    if (this.#isStopped) return;
    this.#failures = 0;
    this.#lastEventId = eventId(event) ?? this.#lastEventId;
    const { data } = event;
    if (!isMessage(event)) return;
    const use = (message: JsonRpcMessage): void => {
      if (!this.#isStopped) this.#options.onMessage(message, data.length);
    };
    reader.read(data, use, (error) => {
      call.stop();
      this.#onFault(error);
    });
  }

  #onFault(error: GatewayError): void {
    if (this.#isStopped) return;
    const status = error.data?.http_status;
    const isTemporary =
      error.code !== "UPSTREAM_INVALID" && (typeof status !== "number" || status >= 500 || status === 429);
    if (isTemporary) this.#retry(undefined);
    else this.#options.onEnd(typeof status === "number" ? status : undefined, error);
  }

  #retry(requestedMs: number | undefined): void {
    if (this.#isStopped) return;
    const ownMs = Math.min(maxRetryMs, firstRetryMs * 2 ** this.#failures++);
    const delayMs = Math.min(maxRetryMs, Math.max(minRetryMs, requestedMs ?? ownMs));
    this.#timer = setTimeout(() => this.#connect(), delayMs);
  }
}
