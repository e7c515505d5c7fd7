import { once } from "node:events";
import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { TokenUsage } from "../../action/model-api.ts";
import { retryAfterHeader } from "../../http/refusal.ts";
import type { FailedResponse, WholeResponse } from "../../provider/exchange.ts";
import type { WireEvent } from "../../provider/wire/event-reader.ts";
import { withoutRepeats } from "../../provider/wire/repeated.ts";
import type { StreamReader } from "../../provider/wire/stream-reader.ts";
import type { StreamStep } from "../../provider/wire/stream-step.ts";
import type { Answer } from "../../road/dispatch.ts";
import type { AnswerReader } from "../../road/stream.ts";

/** The reply to the client: whole, or already streamed. */
export type ModelReply = WholeReply | { readonly kind: "streamed" };

/**
 * The form in which a client reads an answer, where that is another than the API in which the answer is judged. For one
 * request.
 */
export interface ReplyForm {
  /** The `content-type` of a stream. */
  readonly streamType: string;
  /** Translates a whole answer. Throws PROVIDER_INVALID and MODEL_UNTRANSLATABLE. */
  whole(answer: JsonObject): JsonObject;
  /** Translates the error of a provider. */
  providerError(status: number, error: JsonObject): JsonObject;
  /** Reads an event of a stream before policy does. Throws as `whole` does for what `render` could not express. */
  check(event: WireEvent): void;
  /** The bytes of events as policy left them, perhaps none. */
  render(events: readonly WireEvent[]): Uint8Array;
  /** The bytes after the last event. */
  end(): StreamTail;
  /** The bytes that end a stream with an error. */
  errorEnd(error: GatewayError, requestId: string): StreamTail;
}

/** The last bytes of a stream; `last` is for clients to read as a chunk of its own. */
export type StreamTail = readonly [bytes: Uint8Array, last?: Uint8Array];

export interface WholeReply {
  readonly kind: "whole";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
}

/** Throws TOOLS_DISABLED for a response, or a part of one, that contains the use of a tool which is not passed on. */
export type RefuseToolUse = (answer: JsonObject) => void;

interface WholeReplyOptions {
  readonly refuse: RefuseToolUse;
  readonly form: ReplyForm | undefined;
  /** True where policy reads answers: what spells a text once more, in another form, is left out then. */
  readonly isJudged: boolean;
}

/**
 * A provider's whole response, in `form` if any, else byte for byte where policy changes nothing. Throws as the form does,
 * and `makeReply` throws TOOLS_DISABLED.
 */
export function wholeReply(
  { status, body: given, raw }: WholeResponse,
  { refuse, form, isJudged }: WholeReplyOptions,
): Answer<WholeReply> {
  const body = isJudged ? withoutRepeats(given) : given;
  form?.whole(body);
  const makeReply = (output: Json): WholeReply => {
    refuse(body);
    if (form !== undefined) return { kind: "whole", status, bytes: bytesOf(form.whole(output as JsonObject)) };
    return { kind: "whole", status, bytes: output === given && raw !== undefined ? raw : bytesOf(output) };
  };
  return { status: "success", output: body, makeReply };
}

/**
 * A provider's error, in its own words where it has some for the client; else the gateway's error, which names an approval
 * that was used up. Contains the request id where the API has a place for it. In `form` if any.
 */
export function failedReply(
  { error, status, body }: FailedResponse,
  approvalId: string | undefined,
  requestId: string,
  form?: ReplyForm,
): Answer<WholeReply> {
  if (body === null || approvalId !== undefined) {
    const output = { code: error.code, message: error.publicMessage };
    const makeReply = (judged: Json): never => {
      throw judged === output ? error : new GatewayError(error.code);
    };
    return { status: "error", output, makeReply };
  }
  const headers = retryAfterHeader(error);
  const makeReply = (judged: Json): WholeReply => {
    const shown = form?.providerError(status, judged as JsonObject) ?? withRequestId(judged, requestId);
    return { kind: "whole", status, headers, bytes: bytesOf(shown) };
  };
  return { status: "error", output: body, makeReply };
}

function withRequestId(error: Json, requestId: string): Json {
  return isJsonObject(error) && Object.hasOwn(error, "request_id") ? { ...error, request_id: requestId } : error;
}

function bytesOf(value: Json): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

const streamHeaders = {
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

const chunkPauseMs = 50;

const eventStreamType = "text/event-stream; charset=utf-8";

/** Writes a stream to the client, with backpressure. The response begins with the first bytes. */
export class EventSink {
  readonly #ctx: Context;
  readonly #signal: AbortSignal;
  readonly #type: string;
  #sent = 0;
  #answer: () => JsonObject = () => ({});

  /**
   * `signal` aborts when nothing more may be sent, for example because the client disconnected. `type`: the
   * `content-type` of the stream.
   */
  constructor(ctx: Context, signal: AbortSignal, type: string = eventStreamType) {
    this.#ctx = ctx;
    this.#signal = signal;
    this.#type = type;
  }

  /** True once anything was sent: no other response is possible then. */
  get begun(): boolean {
    return this.#ctx.res.headersSent;
  }

  /** Resolves once the client can read more. Rejects with the signal's reason, or CANCELLED after a disconnect. */
  async write(bytes: Uint8Array): Promise<void> {
    const { res } = this.#ctx;
    this.#signal.throwIfAborted();
    if (res.destroyed) throw new GatewayError("CANCELLED");
    this.#begin();
    if (!res.write(bytes))
      await once(res, "drain", { signal: this.#signal }).catch(() => this.#signal.throwIfAborted());
  }

  /** The same for events; `answer` returns the answer that they are of, as far as it came. */
  writeEvents(events: readonly WireEvent[], answer: () => JsonObject): Promise<void> {
    this.#sent += events.filter(({ keepAlive }) => keepAlive !== true).length;
    this.#answer = answer;
    return this.write(Buffer.concat(events.map(({ raw }) => raw)));
  }

  /** The events that were written, without those that only keep the connection alive. */
  get sent(): number {
    return this.#sent;
  }

  /** The answer that was written last, as far as it came; empty where none was. */
  answer(): JsonObject {
    return this.#answer();
  }

  /** Ends the response with these bytes, `last` after a pause. */
  end(...[bytes, last]: StreamTail | []): void {
    const { res } = this.#ctx;
    if (res.destroyed) return;
    if (bytes === undefined || last === undefined) res.end(bytes);
    else res.write(bytes, () => setTimeout(() => res.end(last), chunkPauseMs));
  }

  #begin(): void {
    if (this.begun) return;
    const { res } = this.#ctx;
    this.#ctx.respond = false;
    res.writeHead(200, { "content-type": this.#type, ...streamHeaders });
    res.socket?.setNoDelay(true);
  }
}

/** Events that begin a part of an answer which may be the use of a tool. */
const beginnings: ReadonlySet<string | undefined> = new Set([
  "content_block_start",
  "response.output_item.added",
  "response.output_item.done",
]);

/** Reads a streamed response: keeps the provider's token count, and refuses the use of tools that are not passed on. */
export class CountingReader implements AnswerReader<WireEvent> {
  readonly #reader: StreamReader;
  readonly #refuse: RefuseToolUse;
  readonly #onUsage: (usage: TokenUsage) => void;
  readonly #onEvent: (event: WireEvent) => void;
  #usage: TokenUsage | undefined;

  /** `onUsage`: called with each count of the provider; `onEvent`: with each event before it is read. */
  constructor(
    reader: StreamReader,
    refuse: RefuseToolUse,
    onUsage: (usage: TokenUsage) => void,
    onEvent: (event: WireEvent) => void,
  ) {
    this.#reader = reader;
    this.#refuse = refuse;
    this.#onUsage = onUsage;
    this.#onEvent = onEvent;
  }

  /** The latest count of the provider. */
  get usage(): TokenUsage | undefined {
    return this.#usage;
  }

  /** Throws TOOLS_DISABLED at the first use of a tool that is not passed on. */
  read(event: WireEvent): StreamStep {
    this.#onEvent(event);
    const step = this.#reader.read(event);
    this.#usage = step.usage ?? this.#usage;
    if (step.usage !== undefined) this.#onUsage(step.usage);
    if (beginnings.has(event.event) || step.terminal) this.#refuse(this.body());
    return step;
  }

  readonly body = (): JsonObject => this.#reader.body();

  sizeOf(event: WireEvent): number {
    return this.#reader.sizeOf(event);
  }

  rewrite(event: WireEvent, texts: readonly string[]): WireEvent {
    return this.#reader.rewrite(event, texts);
  }

  isStale(event: WireEvent): boolean {
    return this.#reader.isStale(event);
  }

  isWhole(pointer: string): boolean {
    return this.#reader.isWhole(pointer);
  }
}
