import { once } from "node:events";
import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { TokenUsage } from "../../action/model-api.ts";
import type { FailedResponse, WholeResponse } from "../../provider/exchange.ts";
import type { WireEvent } from "../../provider/wire/event-reader.ts";
import type { StreamReader } from "../../provider/wire/stream-reader.ts";
import type { StreamStep } from "../../provider/wire/stream-step.ts";
import type { Answer } from "../../road/dispatch.ts";
import type { AnswerReader } from "../../road/stream.ts";
import { retryAfter } from "./error.ts";
import { refuseToolUse } from "./tool-passthrough.ts";

/** What the client gets: all of it, or nothing more, because it was streamed. */
export type ModelReply = WholeReply | { readonly kind: "streamed" };

interface WholeReply {
  readonly kind: "whole";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
}

/** A provider's whole answer, byte for byte where policy changes nothing. Its reply throws TOOLS_DISABLED where it must. */
export function wholeReply({ status, body, raw }: WholeResponse, refusesTools: boolean): Answer<WholeReply> {
  const makeReply = (output: Json): WholeReply => {
    if (refusesTools) refuseToolUse(body);
    return { kind: "whole", status, bytes: output === body && raw !== undefined ? raw : bytesOf(output) };
  };
  return { status: "success", output: body, makeReply };
}

/**
 * A provider's refusal, in its own words where it has some for the client; else the error itself. An approval that was
 * used up for it is told of. Clients find the id of the request in it where their API has a place for it.
 */
export function failedReply(
  { error, status, body }: FailedResponse,
  approvalId: string | undefined,
  requestId: string,
): Answer<WholeReply> {
  if (body === null || approvalId !== undefined) {
    const output = { code: error.code, message: error.publicMessage };
    const makeReply = (judged: Json): never => {
      throw judged === output ? error : new GatewayError(error.code);
    };
    return { status: "error", output, makeReply };
  }
  const headers = retryAfter(error);
  const makeReply = (judged: Json): WholeReply => {
    return { kind: "whole", status, headers, bytes: bytesOf(withRequestId(judged, requestId)) };
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
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** The client's end of a stream: begun with the first bytes, at the pace at which the client reads. */
export class EventSink {
  readonly #ctx: Context;
  readonly #signal: AbortSignal;

  /** `signal` aborts when nothing more is to be sent, the client being gone among the reasons. */
  constructor(ctx: Context, signal: AbortSignal) {
    this.#ctx = ctx;
    this.#signal = signal;
  }

  /** Whether the client was told anything, so that no other answer can be given. */
  get begun(): boolean {
    return this.#ctx.res.headersSent;
  }

  /** Resolves once the client can take more. Rejects with what the signal says, or CANCELLED where the client is gone. */
  async write(bytes: Uint8Array): Promise<void> {
    const { res } = this.#ctx;
    this.#signal.throwIfAborted();
    if (res.destroyed) throw new GatewayError("CANCELLED");
    this.#begin();
    if (!res.write(bytes))
      await once(res, "drain", { signal: this.#signal }).catch(() => this.#signal.throwIfAborted());
  }

  /** The last word. */
  end(bytes?: Uint8Array): void {
    if (!this.#ctx.res.destroyed) this.#ctx.res.end(bytes);
  }

  #begin(): void {
    if (this.begun) return;
    const { res } = this.#ctx;
    this.#ctx.respond = false;
    res.writeHead(200, streamHeaders);
    res.socket?.setNoDelay(true);
  }
}

/** The reader of a streamed answer: it keeps the provider's count, and refuses tools where they are not passed on. */
export class CountingReader implements AnswerReader<WireEvent> {
  readonly #reader: StreamReader;
  readonly #refusesTools: boolean;
  readonly #onUsage: (usage: TokenUsage) => void;
  #usage: TokenUsage | undefined;

  /** `onUsage` hears of each count that the provider gives. */
  constructor(reader: StreamReader, refusesTools: boolean, onUsage: (usage: TokenUsage) => void) {
    this.#reader = reader;
    this.#refusesTools = refusesTools;
    this.#onUsage = onUsage;
  }

  /** What the provider counted so far. */
  get usage(): TokenUsage | undefined {
    return this.#usage;
  }

  /** Throws TOOLS_DISABLED as soon as an answer of the messages API asks for a tool that may not be asked for. */
  read(event: WireEvent): StreamStep {
    const step = this.#reader.read(event);
    this.#usage = step.usage ?? this.#usage;
    if (step.usage !== undefined) this.#onUsage(step.usage);
    if (this.#refusesTools && (event.event === "content_block_start" || step.terminal)) refuseToolUse(this.body());
    return step;
  }

  body(): JsonObject {
    return this.#reader.body();
  }

  sizeOf(event: WireEvent): number {
    return this.#reader.sizeOf(event);
  }

  rewrite(event: WireEvent, texts: readonly string[]): WireEvent {
    return this.#reader.rewrite(event, texts);
  }

  isWhole(pointer: string): boolean {
    return this.#reader.isWhole(pointer);
  }
}
