import type { ServerResponse } from "node:http";
import { lineJson } from "../../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";

/** Unsent bytes a slow reader may leave in memory; whoever has more to come is cut off. */
const maxUnsentBytes = 4 * 1024 * 1024;
const keepAliveMs = 25_000;

export type ServerMessage = JsonRpcNotification | JsonRpcRequest;

const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/**
 * The answer to one HTTP request: a JSON body, or an event stream from the first message that precedes the answer.
 * Writing after the client has gone is a no-op.
 */
export class Reply {
  readonly #response: ServerResponse;
  readonly #mayStream: boolean;
  #keepAlive: NodeJS.Timeout | undefined;
  #closed = false;
  #followed = false;
  readonly #closeListeners = new Set<() => void>();

  /** `mayStream`: whether the client reads `text/event-stream`. */
  constructor(response: ServerResponse, mayStream: boolean) {
    this.#response = response;
    this.#mayStream = mayStream;
    response.once("close", () => this.#close());
  }

  get open(): boolean {
    return !this.#closed && !this.#response.writableEnded && !this.#response.destroyed;
  }

  get mayStream(): boolean {
    return this.#mayStream && this.open;
  }

  setHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }

  /** Sends a message ahead of the answer. False where the client reads no stream: then it is not delivered. */
  send(message: ServerMessage | JsonRpcResponse): boolean {
    if (!this.mayStream) return false;
    this.startStream();
    this.#write(message);
    return true;
  }

  /** Opens the event stream with nothing in it yet. */
  startStream(): void {
    // A client that is gone is not told twice: nothing would end the timer any more.
    if (!this.open || this.#response.headersSent) return;
    this.#response.writeHead(200, streamHeaders);
    this.#response.flushHeaders();
    this.#keepAlive = setInterval(() => this.open && this.#response.write(": keep-alive\n\n"), keepAliveMs);
    this.#followConnection();
  }

  /** Opens the event stream of HTTP+SSE, whose first event says where its client is to post. */
  announce(path: string): void {
    this.startStream();
    if (this.open) this.#response.write(`event: endpoint\ndata: ${path}\n\n`);
  }

  /** The last word: the response itself, as JSON or as the stream's last event. */
  finish(status: number, body: JsonRpcResponse): void {
    if (!this.open) return;
    if (this.#response.headersSent) {
      this.#write(body);
      this.#response.end();
      return;
    }
    const text = JSON.stringify(body);
    this.#response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    this.#response.end(text);
  }

  /** Ends without a body: 202 for what needs no answer, or the end of a stream. */
  end(status: number): void {
    if (!this.open) return;
    if (!this.#response.headersSent) this.#response.writeHead(status);
    this.#response.end();
  }

  /** Hears once that nothing can be sent any more, whoever ended it. What it returns stops that. */
  onClosed(listener: () => void): () => void {
    this.#followConnection();
    this.#closeListeners.add(listener);
    return () => void this.#closeListeners.delete(listener);
  }

  onGone(listener: () => void): void {
    this.#response.once("close", () => {
      if (!this.#response.writableFinished) listener();
    });
  }

  /** A response whose turn on its connection has not come is not told when that closes; a stream would stay for ever. */
  #followConnection(): void {
    if (this.#followed) return;
    this.#followed = true;
    const { socket } = this.#response.req;
    // Requests can be sent ahead of their turn, and each that is answered late listens: that is no leak to warn of.
    socket.setMaxListeners(0);
    const close = (): void => this.#close();
    socket.once("close", close);
    this.#closeListeners.add(() => socket.off("close", close));
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#keepAlive);
    for (const listener of this.#closeListeners) listener();
  }

  /** What is unsent counts before the message, not with it: one long answer to a quick reader is no backlog. */
  #write(message: ServerMessage | JsonRpcResponse): void {
    if (this.#response.writableLength > maxUnsentBytes) this.#response.destroy();
    else this.#response.write(`event: message\ndata: ${lineJson(message)}\n\n`);
  }
}
