import { createServer, type IncomingMessage, type RequestListener, type Server, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Koa from "koa";
import { portFault, portSetting } from "../config/port-fault.ts";

interface ListenerLimits {
  readonly headersMs: number;
  readonly bodyMs: number;
  readonly keepAliveMs: number;
  /** A peer that reads nothing of its pending response for this long is disconnected, at the latest after twice that. */
  readonly unreadMs: number;
  readonly maxConnections: number;
}

const headerBytes = 16_384;
/** The interval at which Node checks deadlines; a slow sender is cut off at most this much later. */
const sweepMs = 2_000;

/** One listening port. Requests that Node would drop by itself get a status that a client can read. */
export class Listener {
  readonly #server: Server;
  /** The number of requests in flight, by connection; only connections that have any. */
  readonly #inFlight: Map<Socket, number> = new Map();
  readonly #taken = new Set<Socket>();
  /** Those of them that have sent no request yet. */
  readonly #unused = new Set<Socket>();

  private constructor(server: Server, serve: RequestListener) {
    this.#server = server;
    // A pipelined response whose turn never came is never closed: the end of its connection has to count.
    server.on("connection", (socket) => socket.once("close", () => this.#inFlight.delete(socket)));
    // Every reader must find the end of a body in the same place. Node also reads a body as chunked behind another coding,
    // and in HTTP/1.0; others do not, and see a second request in what Node takes for the first. Nothing more is read from
    // a connection on which a request was not plainly framed.
    server.on("request", (request, response) => {
      const { socket, httpVersion } = request;
      this.#unused.delete(socket);
      this.#inFlight.set(socket, (this.#inFlight.get(socket) ?? 0) + 1);
      response.once("close", () => {
        const left = (this.#inFlight.get(socket) ?? 0) - 1;
        if (left > 0) this.#inFlight.set(socket, left);
        else this.#inFlight.delete(socket);
      });
      if (!socket.writable) return;
      const coding = request.headers["transfer-encoding"]?.toLowerCase();
      if (coding === undefined || (coding === "chunked" && httpVersion === "1.1")) serve(request, response);
      else endBroken(socket, 400);
    });
    server.on("timeout", (socket) => this.#idle(socket));
  }

  /** Resolves once the port accepts connections. `upgrade`: null on a port without WebSocket. Rejects with PORT_UNAVAILABLE, naming host and port. */
  static open(
    app: Koa,
    host: string,
    port: number,
    limits: ListenerLimits,
    upgrade: Upgrade | null,
  ): Promise<Listener> {
    const server = createServer({
      maxHeaderSize: headerBytes,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.bodyMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: sweepMs,
      requireHostHeader: true,
      insecureHTTPParser: false,
    });
    // Node drops headers beyond its count in silence; the guard counts them and says so.
    server.maxHeadersCount = 0;
    server.maxConnections = limits.maxConnections;
    server.on("clientError", answerBrokenRequest);
    server.timeout = limits.unreadMs;
    if (upgrade !== null) acceptUpgrades(server, upgrade);
    return new Promise((resolve, reject) => {
      const listener = new Listener(server, app.callback());
      server.once("error", (cause) => reject(portFault(host, port, portSetting, cause)));
      server.listen(port, host, () => resolve(listener));
    });
  }

  /** The port in use; differs from the configured one where that was 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Serves a connection that was accepted elsewhere, as one of this port, within the same limit. */
  take(socket: Socket): void {
    if (this.#taken.size >= this.#server.maxConnections) return void socket.destroy();
    this.#taken.add(socket);
    this.#unused.add(socket);
    socket.once("close", () => {
      this.#taken.delete(socket);
      this.#unused.delete(socket);
    });
    this.#server.emit("connection", socket);
    socket.resume();
  }

  /**
   * Stops accepting, lets requests in flight finish for `drainMs`, then closes the remaining connections. Idle connections
   * are not waited for: clients keep some that they never use again. But what was accepted elsewhere may have its first request
   * on the way.
   */
  async close(drainMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const firstMs = Math.min(drainMs, lingerMs);
    for (let waitedMs = 0; this.#unused.size > 0 && waitedMs < firstMs; waitedMs += 10) await sleep(10);
    const end = performance.now() + drainMs;
    while (this.#inFlight.size > 0 && performance.now() < end) await sleep(10);
    this.#server.closeAllConnections();
    await closed;
  }

  /** Closes a connection without traffic, unless a response is still to come and nothing waits for the peer to read it. */
  #idle(socket: Socket): void {
    if (socket.writableLength > 0 || !this.#inFlight.has(socket)) socket.destroy();
  }
}

function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
  else endBroken(socket, brokenRequestStatus(error.code));
}

/** Ends a connection that cannot be parsed. */
function endBroken(socket: Socket, status: number): void {
  endWith(socket, status, String(STATUS_CODES[status]));
}

function brokenRequestStatus(code: string | undefined): number {
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  return 400;
}

/** Takes over the connection of a request for WebSocket. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

const hopHeaders: ReadonlySet<string> = new Set(["upgrade", "http2-settings"]);

/**
 * Passes requests for WebSocket to `upgrade`. Node also hands over requests for other protocols, and some clients offer
 * HTTP/2 with every request: those are served as if they had not asked. The second on a connection is its last request: each
 * makes Node listen to the connection once more.
 */
function acceptUpgrades(server: Server, upgrade: Upgrade): void {
  const offered = new WeakSet<Duplex>();
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() === "websocket") return upgrade(request, socket, head);
    socket.unshift(Buffer.concat([headOf(request, offered.has(socket)), head]));
    offered.add(socket);
    server.emit("connection", socket);
  });
}

/** The request's own head, every header unchanged but those that ask for another protocol. */
function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage, isLast: boolean): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index] as string, rawHeaders[index + 1] as string];
    if (hopHeaders.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${name.toLowerCase() === "connection" ? withoutUpgrade(value, isLast) : value}`);
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function withoutUpgrade(connection: string, isLast: boolean): string {
  if (isLast) return "close";
  const kept = connection.split(",").filter((token) => !hopHeaders.has(token.trim().toLowerCase()));
  return kept.join(",") || "keep-alive";
}

/** The time a peer has to read the final response before its connection is destroyed. */
const lingerMs = 1_000;

/** Sends problem+json on a connection from which nothing more is read, and ends it. */
export function endWith(
  socket: Duplex,
  status: number,
  title: string,
  members: object = {},
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = JSON.stringify({ type: "about:blank", title, status, ...members });
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nconnection: close\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\n${more.join("")}` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  // A peer that does not close its side would hold the connection forever.
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
