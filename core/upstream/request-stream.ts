import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../action/error.ts";
import type { JsonRpcMessage, JsonRpcResponse } from "../action/json-rpc.ts";
import type { FloodGate } from "./change-watch.ts";
import { type Flight, type ReplyBounds, readReply } from "./flight.ts";
import { type BodyReader, EventBody, HttpCall, mediaType, statusError, WholeBody } from "./http-call.ts";
import { eventId, isMessage, ServerStream } from "./server-stream.ts";
import type { SseEvent } from "./sse-reader.ts";

const errorBodyBytes = 65_536;
/** An answered stream may take this long to end, so that its socket can be used again. */
const lingerMs = 1_000;

interface RequestStreamListener {
  /** A notification or request beside the answer. */
  onMessage(message: JsonRpcMessage): void;
  onInitialized(headers: IncomingHttpHeaders): void;
  /**
   * No answer to this request: HTTP 404, which is what a lost session gets, or 400, which many servers give instead.
   * Returns true when the flight is taken care of.
   */
  onMissing(certain: boolean): boolean;
  resume(lastEventId: string, call: HttpCall): void;
}

/** The answer to one POST: JSON, or an event stream that may be taken up again by a GET where it broke off. */
export class RequestStream {
  readonly call: HttpCall;
  readonly #flight: Flight;
  readonly #bounds: ReplyBounds;
  readonly #gate: FloodGate;
  readonly #listener: RequestStreamListener;
  #lastEventId: string | undefined;
  #resumed: ServerStream | undefined;

  constructor(flight: Flight, bounds: ReplyBounds, gate: FloodGate, listener: RequestStreamListener) {
    this.#flight = flight;
    this.#bounds = bounds;
    this.#gate = gate;
    this.#listener = listener;
    this.call = new HttpCall({
      onResponse: (status, headers) => this.#onResponse(status, headers),
      onFault: (error) => this.#onFault(error),
    });
    flight.release = (answered) => this.#release(answered);
  }

  #onResponse(status: number, headers: IncomingHttpHeaders): BodyReader {
    const type = mediaType(headers);
    if (status !== 200) return this.#errorBody(status, type);
    if (this.#flight.request.method === "initialize") this.#listener.onInitialized(headers);
    if (type === "application/json") return new WholeBody(this.#bounds.bytes, (body) => this.#onBody(body));
    if (type !== "text/event-stream") {
      throw new GatewayError("UPSTREAM_INVALID", "expected an answer of application/json or text/event-stream");
    }
    return new EventBody(
      this.#bounds.bytes,
      (event) => this.#onEvent(event),
      (retryMs) =>
        this.#onBreak(new GatewayError("UPSTREAM_UNAVAILABLE", "the stream ended without an answer"), retryMs),
    );
  }

  /** A refusal may still carry a JSON-RPC error: that is the upstream's answer. */
  #errorBody(status: number, type: string): BodyReader {
    const refused = status >= 400 ? statusError(status) : undefined;
    if (refused === undefined) throw statusError(status);
    return new WholeBody(errorBodyBytes, (body) => {
      const answer = type === "application/json" ? this.#readError(body) : undefined;
      const unanswered = answer?.id !== this.#flight.request.id && (status === 404 || status === 400);
      if (unanswered && this.#listener.onMissing(status === 404)) return;
      if (answer === undefined) this.#flight.reject(refused);
      else this.#flight.resolve(answer);
    });
  }

  #readError(body: Buffer): JsonRpcResponse | undefined {
    try {
      const { kind, message } = readReply(body, this.#bounds);
      if (kind !== "response" || !("error" in message)) return undefined;
      return message.id === null || message.id === this.#flight.request.id ? message : undefined;
    } catch {
      return undefined; // the status says enough
    }
  }

  #onBody(body: Buffer): void {
    const read = readReply(body, this.#bounds);
    if (read.kind !== "response") throw new GatewayError("UPSTREAM_INVALID", `expected an answer, got a ${read.kind}`);
    this.#onAnswer(read.message);
  }

  #onAnswer(response: JsonRpcResponse): void {
    if (response.id !== this.#flight.request.id && response.id !== null) {
      throw new GatewayError("UPSTREAM_INVALID", "expected the id of this request, got another");
    }
    this.#flight.resolve(response);
  }

  #onEvent(event: SseEvent): void {
    if (this.#flight.settled) return;
    this.#lastEventId = eventId(event) ?? this.#lastEventId;
    if (isMessage(event)) this.#onMessage(readReply(event.data, this.#bounds), event.data.length);
  }

  #onMessage(read: JsonRpcMessage, bytes: number): void {
    if (read.kind === "response") {
      this.#onAnswer(read.message);
      return;
    }
    if (!this.#gate.admit(bytes)) {
      throw new GatewayError("UPSTREAM_INVALID", "the upstream floods the gateway with messages");
    }
    this.#listener.onMessage(read);
  }

  #onFault(error: GatewayError): void {
    if (error.code === "UPSTREAM_UNAVAILABLE") this.#onBreak(error, undefined);
    else this.#flight.reject(error);
  }

  /** Only an upstream that numbered its events will send the rest of them. */
  #onBreak(error: GatewayError, retryMs: number | undefined): void {
    if (this.#flight.settled) return;
    if (this.#lastEventId === undefined) {
      this.#flight.reject(error);
      return;
    }
    this.#resumed = new ServerStream({
      bounds: this.#bounds,
      open: (lastEventId, call) => this.#listener.resume(lastEventId as string, call),
      onMessage: (message, bytes) => this.#onMessage(message, bytes),
      onEnd: (_, fault) => this.#flight.reject(fault),
      lastEventId: this.#lastEventId,
      retryMs,
    });
  }

  #release(answered: boolean): void {
    this.#resumed?.stop();
    if (this.call.done) return;
    if (answered) setTimeout(() => this.call.stop(), lingerMs).unref();
    else this.call.stop();
  }
}
