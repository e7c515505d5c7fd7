import { once } from "node:events";
import type { Context } from "koa";
import { GatewayError } from "../../kernel/error.ts";

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
