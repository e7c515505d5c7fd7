import { GatewayError } from "../../kernel/error.ts";
import type { JsonRpcRequest, JsonRpcResponse, RequestId } from "../../kernel/json-rpc.ts";
import type { Principal } from "../../kernel/principal.ts";
import { type SessionScope, sseSession } from "../../kernel/session-scope.ts";
import type { Reply } from "./reply.ts";
import type { McpSession } from "./session.ts";
import type { Occupant } from "./session-table.ts";

const mostPosts = 64;
const mostRequests = 64;

/** Hears once of each scope that was used, when nothing can be asked in it any more. */
export type ScopeListener = (scope: SessionScope, principal: Principal) => Promise<void>;

/**
 * One client on HTTP+SSE: the stream on which it reads everything, and the session that its handshake opens. Its scope
 * lives as long as the stream. What it posts is bounded: 64 messages that arrive, and 64 requests that are served.
 */
export class SseConnection implements Occupant {
  readonly id: string;
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly stream: Reply;
  readonly #onScopeEnded: ScopeListener;
  #session: McpSession | null = null;
  #opening: Promise<McpSession> | null = null;
  #posts = 0;
  #stopping = false;
  #closed = false;
  #onIdle: () => void = () => undefined;
  readonly #accepted = new Set<RequestId>();

  constructor(id: string, principal: Principal, stream: Reply, onScopeEnded: ScopeListener) {
    this.id = id;
    this.principal = principal;
    this.scope = sseSession(principal.tenant, principal.id, id);
    this.stream = stream;
    this.#onScopeEnded = onScopeEnded;
  }

  /** Null until the handshake is done. */
  get session(): McpSession | null {
    return this.#session;
  }

  get busy(): boolean {
    return this.stream.open;
  }

  /** Takes in one POST. Rejects with CONNECTION_BUSY beyond 64 at once, with SESSION_UNKNOWN where it comes too late. */
  async receive<T>(read: () => Promise<T>, act: (message: T) => Promise<void>): Promise<void> {
    if (this.#posts >= mostPosts)
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${mostPosts} posts at once`);
    this.#posts++;
    try {
      const message = await read();
      if (!this.stream.open) throw new GatewayError("SESSION_UNKNOWN", "open a new one");
      await act(message);
    } finally {
      this.#posts--;
    }
  }

  /** Promises an answer on the stream, until `finish`. Throws where there can be none. */
  accept({ id, method }: JsonRpcRequest): void {
    if (this.#stopping) throw new GatewayError("STOPPING");
    if (this.#accepted.has(id)) throw new GatewayError("INVALID_REQUEST", "this request id is already in flight");
    if (this.#accepted.size >= mostRequests) {
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${mostRequests} requests in flight`);
    }
    if (method === "initialize" && this.#opening !== null) {
      throw new GatewayError("INVALID_REQUEST", "`initialize` was sent before");
    }
    if (method !== "initialize" && method !== "ping" && this.#session === null) {
      throw new GatewayError("INVALID_REQUEST", "expected `initialize` first");
    }
    this.#accepted.add(id);
  }

  /** Keeps the promise, unless the answer is null: nobody wants it any more. */
  finish(id: RequestId, answer: JsonRpcResponse | null): void {
    this.#accepted.delete(id);
    if (answer !== null) this.stream.send(answer);
    if (this.#stopping) this.#endWhenIdle();
    if (this.#accepted.size === 0) this.#onIdle();
  }

  /** Keeps the session that the handshake opens. A handshake that fails may be repeated. */
  async add(open: (id: string) => Promise<McpSession>): Promise<McpSession> {
    this.#opening = open(this.id);
    try {
      const session = await this.#opening;
      if (this.#closed) throw new GatewayError("CANCELLED");
      this.#session = session;
      session.attach(this.stream);
      return session;
    } catch (error) {
      if (!this.#closed) this.#opening = null;
      throw error;
    }
  }

  /** Takes no further request, and ends the stream once those it has taken are answered. */
  endStream(): void {
    this.#stopping = true;
    this.#endWhenIdle();
  }

  /** Cancels what is in flight. The scope has ended once nothing of it is. */
  async close(): Promise<void> {
    this.#closed = true;
    this.stream.end(200);
    const session = await this.#opening?.catch(() => null);
    if (session === null || session === undefined) return;
    await session.close();
    if (this.#accepted.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await this.#onScopeEnded(this.scope, this.principal);
  }

  #endWhenIdle(): void {
    if (this.#accepted.size === 0) this.stream.end(200);
  }
}
