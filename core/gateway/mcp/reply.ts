import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { isLarge, type Json, lineJson, lineText } from "../../action/json.ts";
import { jsonPieces } from "../../action/json-pieces.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import { turnsOf } from "../../store/pace.ts";

/** Unsent bytes that a slow reader may leave in memory; beyond it the connection is closed. */
const maxUnsentBytes = 4 * 1024 * 1024;
const keepAliveMs = 25_000;

export type ServerMessage = JsonRpcNotification | JsonRpcRequest;

const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/**
 * The response to one HTTP request: a JSON body, or an event stream from the first message that precedes the result.
 * Writing after the client disconnected is a no-op.
 */
export class Reply {
  readonly #response: ServerResponse;
  readonly #mayStream: boolean;
  #keepAlive: NodeJS.Timeout | undefined;
  #closed: boolean;
  /** True once a large result is about to be sent. */
  #isFinishing = false;
  #followed: boolean;
  readonly #closeListeners: Set<() => void>;

  /** `mayStream`: the client reads `text/event-stream`. */
  constructor(response: ServerResponse, mayStream: boolean) {
    this.#response = response;
    this.#mayStream = mayStream;
    this.#closed = false;
    this.#followed = false;
    this.#closeListeners = new Set();
  }

  get open(): boolean {
    return !this.#closed && !this.#isFinishing && !this.#response.writableEnded && !this.#response.destroyed;
  }

  get mayStream(): boolean {
    return this.#mayStream && this.open;
  }

  setHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }

  /** Sends a message before the result. False where the client reads no stream: then it is not delivered. */
  send(message: ServerMessage | JsonRpcResponse): boolean {
    if (!this.mayStream) return false;
    this.startStream();
    this.#write(message);
    return true;
  }

  /** Opens the event stream, still empty. */
  startStream(): void {
    // After the close event nothing would end the timer.
    if (!this.open || this.#response.headersSent) return;
    this.#response.writeHead(200, streamHeaders);
    this.#response.flushHeaders();
    this.#keepAlive = setInterval(() => this.open && this.#response.write(": keep-alive\n\n"), keepAliveMs);
    this.#followConnection();
  }

  /** Opens the event stream of HTTP+SSE, whose first event names the URL to post to. */
  announce(path: string): void {
    this.startStream();
    if (this.open) this.#response.write(`event: endpoint\ndata: ${path}\n\n`);
  }

  /** Sends the result, as JSON or as the stream's last event, and ends the response. */
  finish(status: number, body: JsonRpcResponse): void {
    if (!this.open) return;
    const isStream = this.#response.headersSent;
    if (isLarge(body as unknown as Json)) void this.#finishLarge(status, body as unknown as Json, isStream);
    else if (isStream) {
      this.#write(body);
      this.#response.end();
    } else {
      const text = JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      this.#response.writeHead(status, headers);
      this.#response.end(text);
    }
  }

  /** The same, in turns of its own: each part of the text is made and encoded once. */
  async #finishLarge(status: number, body: Json, isStream: boolean): Promise<void> {
    this.#isFinishing = true;
    const turns = turnsOf(setImmediate);
    await turns.next();
    const parts: Buffer[] = [];
    let length = 0;
    await turns.each(jsonPieces(body), (piece) => {
      const part = Buffer.from(isStream ? lineText(piece) : piece);
      parts.push(part);
      length += part.length;
    });
    const response = this.#response;
    if (isStream && response.writableLength > maxUnsentBytes) response.destroy();
    if (response.destroyed) return;
    if (!isStream) response.writeHead(status, { "content-type": "application/json", "content-length": length });
    response.cork();
    if (isStream) response.write("event: message\ndata: ");
    for (const part of parts) response.write(part);
    if (isStream) response.write("\n\n");
    // Node 22 and 24 leave out the end of a chunked response that is ended while it is corked.
    response.uncork();
    response.end();
  }

  /** Ends the response without a body, or the stream. */
  end(status: number): void {
    if (!this.open) return;
    if (!this.#response.headersSent) this.#response.writeHead(status);
    this.#response.end();
  }

  /** Calls `listener` once when nothing more can be sent, whoever ended it. Returns a function that removes it. */
  onClosed(listener: () => void): () => void {
    this.#followConnection();
    this.#closeListeners.add(listener);
    return () => void this.#closeListeners.delete(listener);
  }

  /** Calls `listener` where the client disconnects before the response is complete. */
  onGone(listener: () => void): void {
    this.#response.once("close", () => {
      if (!this.#response.writableFinished) listener();
    });
  }

  /** A pipelined response whose turn has not come gets no close event: its connection is watched too. */
  #followConnection(): void {
    if (this.#followed || this.#response.closed) return;
    this.#followed = true;
    const { socket } = this.#response.req;
    // Each pipelined request adds a listener: that is no leak to warn of.
    socket.setMaxListeners(0);
    const close = (): void => this.#close();
    this.#response.once("close", close);
    socket.once("close", close);
    this.#closeListeners.add(() => socket.off("close", close));
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#keepAlive);
    for (const listener of this.#closeListeners) listener();
  }

  /** Unsent bytes are counted before the message: one long response to a fast reader is no backlog. */
  #write(message: ServerMessage | JsonRpcResponse): void {
    if (this.#response.writableLength > maxUnsentBytes) this.#response.destroy();
    else this.#response.write(`event: message\ndata: ${lineJson(message)}\n\n`);
  }
}
